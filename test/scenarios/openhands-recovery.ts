import { strict as assert } from "node:assert";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { parseActorKey } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFiles } from "./agent-files.ts";
import { blocker, chiefOf, steps, task } from "./row-agents.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const middle = withDelegates(defineAgent({ name: "middle", model: "puppet" }), [blocker]);
const Followed = z.tuple([z.object({ taskId: z.string(), status: z.string(), result: z.string() })]);
const Shown = z.looseObject({ definition: z.looseObject({ name: z.string(), digest: z.string() }) });
const Digest = z.looseObject({ digest: z.string() });

type Calls = Awaited<ReturnType<RowStage["holdfast"]["delegations"]>>;

/** Waits until some tasks of a conversation are held in their model calls. */
async function held(stage: RowStage, talk: RowTalk, texts: readonly string[], tasks = texts.length): Promise<Calls> {
  await asked(stage, texts, 1);
  return waitUntil(`the tasks of ${talk.id} are at work`, async () => {
    const calls = await stage.holdfast.delegations(talk.key);
    return calls.length === tasks && calls.every(({ attempts }) => attempts === 1) && calls;
  });
}

/** Waits until the model was asked so often for each of the texts. */
async function asked({ fleet }: RowStage, texts: readonly string[], count: number): Promise<void> {
  for (const match of texts) await fleet.model.wait({ model: "blocker", state: "arrived", count, match });
}

const requestsFor = async ({ fleet }: RowStage, text: string) =>
  (await fleet.model.requests()).filter(({ lastUser }) => lastUser === text);

/** The same tasks for the same calls, each with one result that was applied once. */
async function judgeOnce(stage: RowStage, talk: RowTalk, before: Calls): Promise<void> {
  const calls = await stage.holdfast.delegations(talk.key);
  const place = ({ conversation, callId, key }: Calls[number]): string => `${conversation} ${callId} ${key}`;
  assert.deepEqual(calls.map(place), before.map(place));
  assert.deepEqual(
    calls.map(({ appliedTimes, applied }) => [appliedTimes, applied?.outcome]),
    calls.map(() => [1, "done"]),
  );
  const headers = await Promise.all(calls.map(({ key }) => stage.holdfast.read.header(key)));
  assert.ok(headers.every((header) => header?.list["status"] === "completed"));
}

/** Rows about work that was under way when its node died. */
export const RECOVERY_ROWS: Readonly<Record<string, RowTest>> = {
  "batch-wherever-it-stands": async (stage) => {
    const talk = new RowTalk(stage, "wherever");
    const fork = new RowTalk(stage, "wherever-fork");
    const texts = ["one of wherever", "two of wherever"];
    await talk.begin({ ...chiefOf([blocker]), prompt: "hello" });
    await talk.is("idle");
    const rev = (await talk.entries()).length;
    await talk.say(steps(texts.map((text) => task("blocker", text))), "delegate");
    const before = await held(stage, talk, texts);
    await stage.holdfast.conversations.fork(talk.id, { as: fork.id, rev, prompt: "apart" }); // it stands before the calls
    await fork.is("idle");
    await talk.say("meanwhile"); // and the conversation itself behind them
    await stage.death();
    await asked(stage, texts, 2);
    await stage.fleet.model.release("of wherever");
    await talk.is("idle");
    await judgeOnce(stage, talk, before);
    const results = texts.map((text) => `result of ${text}`);
    assert.deepEqual(
      (await talk.said()).filter((text) => results.includes(text)),
      results,
    );
    assert.equal((await talk.said()).at(-1), "meanwhile");
    await fork.say("further");
    await fork.is("idle");
    assert.deepEqual(await fork.said(), ["hello", "hello", "apart", "apart", "further", "further"]);
    assert.deepEqual(await stage.holdfast.delegations(fork.key), []);
    return talk.evidence();
  },

  "pending-over-two-deaths": async (stage) => {
    const talk = new RowTalk(stage, "two-deaths");
    const texts = ["one of two-deaths", "two of two-deaths"];
    await talk.begin({ ...chiefOf([blocker]), prompt: steps(texts.map((text) => task("blocker", text))) });
    const before = await held(stage, talk, texts);
    await stage.death();
    await asked(stage, texts, 2);
    await stage.until("crash"); // two nodes begin together
    await asked(stage, texts, 3);
    await waitUntil("each of them is worked on once", async () => {
      const requests = await stage.fleet.model.requests();
      const living = requests.filter(({ lastUser, aborted }) => texts.includes(lastUser) && !aborted);
      return living.length === texts.length && new Set(living.map(({ lastUser }) => lastUser)).size === texts.length;
    });
    await stage.fleet.model.release("of two-deaths");
    await talk.is("idle");
    await judgeOnce(stage, talk, before);
    assert.deepEqual(
      await talk.results(),
      texts.map((text) => `result of ${text}`),
    );
    for (const text of texts) {
      const requests = await requestsFor(stage, text);
      assert.equal(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size, 1);
      assert.equal(requests.filter(({ answered }) => answered).length, 1);
    }
    return talk.evidence();
  },

  "task-below-task": async (stage) => {
    const talk = new RowTalk(stage, "below");
    const text = "deep of below";
    const { agent, agents } = chiefOf([middle]);
    const prompt = steps([task("middle", steps([task("blocker", text)]))]);
    await talk.begin({ agent, agents: { ...agents, blocker }, prompt });
    const before = await held(stage, talk, [text], 2);
    await stage.death();
    await asked(stage, [text], 2);
    await stage.fleet.model.release(text);
    await talk.is("idle");
    await judgeOnce(stage, talk, before);
    assert.deepEqual(await talk.results(), [[`result of ${text}`]]);
    return talk.evidence();
  },

  "task-goes-on-as-itself": async (stage) => {
    const talk = new RowTalk(stage, "as-itself");
    const [first, second] = ["first of as-itself", "second of as-itself"] as const;
    const members = async (): Promise<readonly string[]> => {
      const keys = new Set<string>();
      for await (const { key } of stage.holdfast.family({ root: talk.key })) keys.add(key);
      return [...keys].toSorted();
    };
    await talk.begin({ ...chiefOf([blocker], {}, { resumable: true }), prompt: steps([task("blocker", first)]) });
    await stage.fleet.model.release(first);
    await talk.is("idle");
    const [done] = Followed.parse(await talk.results());
    assert.equal(done.result, `result of ${first}`);
    const before = await members();
    await stage.death();
    await talk.say(steps([{ name: "task", arguments: { resume: "$task:0", prompt: second } }]), "go-on");
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: second });
    await talk.is("waiting"); // the result that it had does not answer the new call
    await stage.fleet.model.release(second);
    await talk.is("idle");
    const [again] = Followed.parse(await talk.results());
    assert.deepEqual(again, { taskId: done.taskId, status: "completed", result: `result of ${second}` });
    assert.deepEqual(await members(), before);
    const [[alone], [withPast]] = [await requestsFor(stage, first), await requestsFor(stage, second)];
    assert.equal(Number(withPast?.["messageCount"]), Number(alone?.["messageCount"]) + 2);
    return talk.evidence();
  },

  "definition-as-recorded": async (stage) => {
    await using files = await AgentFiles.open(stage);
    await files.write("lead", "puppet", ["worker"]);
    await files.write("worker", "blocker");
    const text = "work of recorded";
    const talk = new RowTalk(stage, "recorded");
    const inFile = async (): Promise<string> => Digest.parse(await files.holdfast("agent", "show", "worker")).digest;
    await files.holdfast("conversation", "start", steps([task("worker", text)]), "--id", talk.id, "--agent", "lead");
    const [call] = await held(stage, talk, [text]);
    const { id } = parseActorKey(call?.key ?? "");
    const { definition } = Shown.parse(await files.holdfast("task", "show", id));
    assert.deepEqual([definition.name, definition.digest], ["worker", await inFile()]);
    await files.write("worker", "echo");
    await stage.death();
    await asked(stage, [text], 2); // the echo would have answered
    assert.deepEqual(Shown.parse(await files.holdfast("task", "show", id)).definition, definition);
    assert.notEqual(await inFile(), definition.digest);
    await stage.fleet.model.release(text);
    await talk.is("idle");
    assert.deepEqual(await talk.results(), [`result of ${text}`]);
    const later = new RowTalk(stage, "recorded-later");
    const prompt = steps([task("worker", "later of recorded")]);
    await files.holdfast("conversation", "start", prompt, "--id", later.id, "--agent", "lead");
    await later.is("idle");
    assert.deepEqual(await later.results(), ["later of recorded"]);
    return talk.evidence();
  },
};
