import { strict as assert } from "node:assert";
import { waitUntil } from "../harness/wait-until.ts";
import { chiefOf, steps, task } from "./row-agents.ts";
import { ask, asker, Asking } from "./row-asking.ts";
import { asked } from "./row-money.ts";
import { answer, PATIENT, refusal } from "./row-people.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const revOf = async ({ holdfast }: RowStage, key: string): Promise<number | undefined> =>
  (await holdfast.read.actor(key))?.record.rev;

const statusOf = async ({ holdfast }: RowStage, key: string): Promise<unknown> =>
  (await holdfast.read.header(key))?.list["status"];

/** A question that was answered, and has ended with everything that it has to say. */
async function consumed(stage: RowStage, id: string): Promise<readonly [asking: Asking, question: string]> {
  const asking = new Asking(stage, id);
  const question = await asking.ask("once?");
  assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
  await asking.talk.is("idle");
  await waitUntil("the question has ended", async () => {
    const actor = await stage.holdfast.read.actor(question);
    return actor?.record.status === "done" && actor.record.outbox.length === 0;
  });
  return [asking, question];
}

/** A sub-agent of its own asks a person. @returns keys of the task and of its question */
async function askingTask(
  stage: RowStage,
  id: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<{ readonly talk: RowTalk; readonly task: string; readonly callId: string; readonly question: string }> {
  const asking = new Asking(stage, id);
  await asking.talk.begin({ ...chiefOf([asker]), prompt: steps([task("asker", steps([ask("may I?")]), more)]) });
  const question = await asking.question("open");
  const calls = await stage.holdfast.delegations(asking.talk.key);
  const call = calls.find(({ src }) => src === "task");
  return { talk: asking.talk, task: call?.key ?? "", callId: call?.callId ?? "", question };
}

const isAt = (stage: RowStage, key: string, status: string): Promise<unknown> =>
  waitUntil(`${key} is ${status}`, async () => (await statusOf(stage, key)) === status, { timeoutMs: 60_000 });

/** Rows about what does not come back, because it is over. */
export const SPENT_PROMISES: Readonly<Record<string, RowTest>> = {
  "not-back-spent": async (stage) => {
    const [asking, question] = await consumed(stage, "spent");
    const before = await revOf(stage, question);
    await stage.death();
    assert.match(await refusal(stage.holdfast.send(question, answer("no", "a2"), PATIENT)), /^HF-6001 .* is consumed/);
    await asking.talk.say("and on");
    await asking.talk.is("idle");
    assert.equal(await revOf(stage, question), before);
    const calls = (await stage.holdfast.delegations(asking.talk.key)).filter(({ src }) => src === "ownerWait");
    assert.deepEqual(
      calls.map(({ key, appliedTimes }) => [key, appliedTimes]),
      [[question, 1]],
    );
    return asking.talk.evidence();
  },

  "case-7": async (stage) => {
    // Gone on with, and held in what comes after it.
    const talk = new RowTalk(stage, "resumed");
    const asking = new Asking(stage, "resumed");
    const then = [task("blocker", "then of resumed")];
    const { agent, agents } = chiefOf([{ ...asker, name: "blocker", model: "blocker", tools: [] }]);
    await talk.begin({
      agent: { ...agent, tools: [...agent.tools, ...asker.tools] },
      agents,
      prompt: steps([ask("on?")], then),
    });
    const question = await asking.question("open");
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: "then of resumed" });
    await isAt(stage, question, "consumed");
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "then of resumed" });
    assert.equal((await talk.list())["waitingOn"], "tasks"); // and not on its owner
    assert.deepEqual(await stage.holdfast.waits.list({ conversation: "resumed" }), []);
    await stage.fleet.model.release("then of resumed");
    await talk.is("idle");
    const calls = (await stage.holdfast.delegations(talk.key)).filter(({ src }) => src === "ownerWait");
    assert.deepEqual(
      calls.map(({ key, appliedTimes }) => [key, appliedTimes]),
      [[question, 1]],
    );
    return talk.evidence();
  },

  "case-12": async (stage) => {
    const [asking, question] = await consumed(stage, "projected");
    const { conversations, read, waits } = stage.holdfast;
    const before = await read.actor(question);
    await stage.death();
    // Everything that tells of it, from the first event on.
    assert.deepEqual(await waits.list({ conversation: "projected" }), []);
    const [row, ...more] = await waits.list({ conversation: "projected", status: "all" });
    assert.deepEqual([row?.status, row?.outcome, more.length], ["consumed", "answered", 0]);
    for await (const { event } of stage.holdfast.events({ subject: "wait.*.*", from: "first", follow: false }))
      assert.ok(event.type.startsWith("holdfast.wait."));
    assert.ok((await read.journal(question)).length > 0);
    assert.ok((await conversations.finalAnswer("projected")) !== undefined);
    // Nor does what only its conversation may say.
    for (const type of ["awaited", "consumed"]) {
      const sent = stage.holdfast.send(question, { type }, PATIENT).then(
        ({ kind }) => kind,
        () => "refused",
      );
      assert.notEqual(await sent, "applied");
    }
    await asking.talk.say("and on");
    await asking.talk.is("idle");
    const after = await read.actor(question);
    assert.deepEqual([after?.record.rev, after?.record.snapshot], [before?.record.rev, before?.record.snapshot]);
    return asking.talk.evidence();
  },

  "not-back-terminal": async (stage) => {
    const { talk, task: key, question } = await askingTask(stage, "over");
    assert.equal((await stage.holdfast.send(question, answer("yes"))).kind, "applied");
    await talk.is("idle");
    const [before, requests] = [await revOf(stage, key), (await stage.fleet.model.requests()).length];
    const prompt = steps([ask("may I?")]);
    const times = await asked(stage, prompt);
    assert.ok(requests >= times);
    await stage.death();
    assert.equal((await stage.holdfast.send(key, { type: "cancel" }, PATIENT)).kind, "refused");
    await talk.say("and on of over");
    await talk.is("idle");
    assert.deepEqual([await statusOf(stage, key), await revOf(stage, key)], ["completed", before]);
    const [call] = await stage.holdfast.delegations(talk.key);
    assert.deepEqual([call?.key, call?.appliedTimes, call?.attempts], [key, 1, 1]);
    return talk.evidence();
  },

  "not-back-cancel-intent": async (stage) => {
    const { talk, task: key, callId, question } = await askingTask(stage, "unwanted");
    await stage.until("absence");
    const sent = await stage.holdfast.send(talk.key, { type: "cancelTask", callId }, { timeoutMs: 300 });
    assert.equal(sent.kind, "accepted");
    await stage.death();
    await isAt(stage, key, "cancelled");
    await talk.is("idle");
    await waitUntil("its question is withdrawn", async () => {
      const header = await stage.holdfast.read.header(question);
      return [header?.list["status"], header?.list["outcome"]].includes("cancelled");
    });
    assert.match(await refusal(stage.holdfast.send(question, answer("yes"), PATIENT)), /^HF-6001 .* is cancelled/);
    return talk.evidence();
  },

  "not-back-deadline": async (stage) => {
    await stage.until("eve");
    const { talk, task: key, question } = await askingTask(stage, "too-late", { deadlineMs: 3000 });
    await stage.death();
    await isAt(stage, key, "timedOut");
    await talk.is("idle");
    await waitUntil("its question is withdrawn", async () => {
      const header = await stage.holdfast.read.header(question);
      return [header?.list["status"], header?.list["outcome"]].includes("cancelled");
    });
    assert.match(await refusal(stage.holdfast.send(question, answer("yes"), PATIENT)), /^HF-6001 .* is cancelled/);
    assert.ok((await talk.said()).some((text) => text.includes("timeout")));
    return talk.evidence();
  },
};
