import { strict as assert } from "node:assert";
import { defineAgent, FILE_TOOLS } from "@holdfast/agents";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { dying, NODES } from "./ouroboros-fleet.ts";
import { chiefOf, steps, task } from "./row-agents.ts";
import { ask, asker, Asking } from "./row-asking.ts";
import type { RowTest } from "./row-run.ts";
import type { RowGroup, RowWorld } from "./row-scenario.ts";
import { RowTalk } from "./row-talk.ts";

const Paths = z.array(z.looseObject({ path: z.string() }));
const Answered = z.tuple([z.object({ answer: z.string(), by: z.string() })]);

const writer = defineAgent({ name: "writer", model: "puppet", tools: [FILE_TOOLS.writeReport] });
const write = (path: string) => ({ name: "write_report", arguments: { path, content: `content of ${path}` } });
const keyOf = ({ holdfast }: RowWorld, id: string): string => holdfast.key("conversation", id);

/** Says what its node will die of; nobody is left to answer. */
const tell = (world: RowWorld, id: string, text: string) =>
  world.holdfast.send(keyOf(world, id), { type: "userMessage", messageId: "fatal", text }, { timeoutMs: 300 });

const REPORTS: Readonly<Record<string, readonly string[]>> = {
  "effect-replayed": ["one.md"],
  "payments-doubled": ["two.md", "three.md", "four.md"],
};

const carriedOutOnce =
  (id: string, paths: readonly string[]): RowTest =>
  async (stage) => {
    const talk = new RowTalk(stage, id);
    await talk.begin({ agent: writer, prompt: "hello" });
    await talk.is("idle");
    await stage.death();
    await waitUntil("its calls have results", async () => (await talk.said()).length > 4, { timeoutMs: 60_000 });
    await talk.is("idle");
    assert.deepEqual(
      Paths.parse(await talk.results()).map(({ path }) => path),
      paths,
    );
    const lines = await stage.cluster.entries();
    const attempts = lines.filter((line) => line.line === "attempt" && line.callId.startsWith(`${talk.key}^`));
    const byKey = Map.groupBy(attempts, (line) => ("idempotencyKey" in line ? line.idempotencyKey : ""));
    assert.equal(byKey.size, paths.length);
    for (const [key, tries] of byKey) {
      // Carried out by both, under one key: the second time nothing happens any more.
      assert.deepEqual(
        tries.map((line) => ("node" in line ? line.node : undefined)),
        [NODES.killed, NODES.after],
        key,
      );
      const numbers = tries.map((line) => ("attempt" in line ? line.attempt : 0));
      assert.equal(lines.filter((line) => line.line === "applied" && numbers.includes(line.attempt)).length, 1, key);
    }
    return talk.evidence();
  };

/** The effects of two conversations are carried out, and their node dies before it can say so of any. */
const effects = dying(
  "effects",
  Object.fromEntries(Object.entries(REPORTS).map(([id, paths]) => [`fault-${id}`, carriedOutOnce(id, paths)])),
  async ({ holdfast }) => {
    const begun = (await holdfast.read.headers("conversation")).map(({ key }) => key);
    const calls = Object.entries(REPORTS).flatMap(([id, paths]) =>
      begun.includes(holdfast.key("conversation", id)) ? paths : [],
    );
    return calls.map((_, n) => ({ point: "job-done", match: "call-", act: n + 1 < calls.length ? "hang" : "kill" }));
  },
  (world) => Promise.all(Object.entries(REPORTS).map(([id, paths]) => tell(world, id, steps(paths.map(write))))),
);

/** A task was taken, and nothing of it was stored. */
const unstored = dying(
  "unstored",
  {
    "fault-scheduled-for-ever": async (stage) => {
      const talk = new RowTalk(stage, "scheduled");
      await talk.begin({ ...chiefOf([asker]), prompt: "hello" });
      await talk.is("idle");
      await stage.until("absence");
      // Its journal may not have been told of that any more.
      const parent = await stage.holdfast.read.actor(talk.key);
      const decided = Object.values(parent?.record.snapshot.children ?? {}).find(({ src }) => src === "task");
      assert.ok(decided !== undefined);
      assert.equal(await stage.holdfast.read.header(decided.key), undefined);
      await stage.death();
      await talk.hears(JSON.stringify(["short work"]));
      await talk.is("idle");
      const [done, ...more] = await stage.holdfast.delegations(talk.key);
      assert.deepEqual([done?.key, done?.created?.node, done?.appliedTimes], [decided.key, NODES.after, 1]);
      assert.equal(more.length, 0);
      return talk.evidence();
    },
  },
  () => [{ point: "before-create", match: ".task.", act: "kill" }],
  (world) => tell(world, "scheduled", steps([task("asker", "short work")])),
);

/** The final answer is stored, and nobody was told. */
const untold = dying(
  "untold",
  {
    "fault-answer-lost-behind-work": async (stage) => {
      const talk = new RowTalk(stage, "untold");
      await talk.start("hello");
      await stage.death();
      await talk.hears("the end");
      await talk.is("idle");
      assert.deepEqual(await talk.said(), ["hello", "hello", "the end", "the end"]);
      const asked = (await stage.fleet.model.requests()).filter(({ lastUser }) => lastUser === "the end");
      assert.equal(asked.length, 1); // what is told is what was stored
      const last = (await talk.entries()).at(-1);
      assert.deepEqual([last?.node, last?.event.type.startsWith("xstate.done.actor.model-")], [NODES.killed, true]);
      const told: string[] = [];
      await waitUntil("its rest is announced", async () => {
        told.length = 0;
        const events = stage.holdfast.events({ subject: "conversation.*.untold.*", from: "first", follow: false });
        for await (const { event } of events) told.push(event.type.split(".").at(-1) ?? "");
        return told.length >= 5;
      });
      assert.deepEqual(told, ["created", "running", "idle", "running", "idle"]);
      await talk.say("and on");
      await talk.is("idle");
      return talk.evidence();
    },
  },
  (world) => [{ point: "after-commit", match: keyOf(world, "untold"), nth: 2, act: "kill" }],
  (world) => tell(world, "untold", "the end"),
);

/** The answer is stored, and who asked has not gone on. */
const unresumed = dying(
  "unresumed",
  {
    "fault-answer-without-resume": async (stage) => {
      const asking = new Asking(stage, "unresumed");
      const question = await asking.ask("go on?");
      await stage.until("absence");
      assert.equal((await stage.holdfast.read.header(question))?.list["status"], "answered");
      const [waiting] = await stage.holdfast.delegations(asking.talk.key);
      assert.equal(waiting?.applied, undefined);
      assert.equal((await asking.talk.list())["status"], "waiting"); // it is seen that nobody has gone on
      await stage.death();
      await asking.talk.is("idle");
      assert.deepEqual(Answered.parse(await asking.talk.results()), [{ answer: "yes", by: "owner" }]);
      const [call] = await stage.holdfast.delegations(asking.talk.key);
      assert.deepEqual([call?.key, call?.appliedTimes], [question, 1]);
      return asking.talk.evidence();
    },
  },
  () => [{ point: "after-commit", match: ".ownerWait.", act: "kill" }],
  async ({ holdfast }) => {
    const [question] = await holdfast.read.headers("ownerWait");
    return holdfast.send(question?.key ?? "", { type: "answer", answerId: "a1", value: "yes" }, { timeoutMs: 300 });
  },
);

/** Its model wants to ask, and the step that opens the question is not stored. */
const unparked = dying(
  "unparked",
  {
    "inv-11": async (stage) => {
      const asking = new Asking(stage, "unparked");
      await asking.talk.begin({ agent: asker, prompt: "hello" });
      await asking.talk.is("idle");
      await stage.until("absence");
      assert.deepEqual(await stage.holdfast.delegations(asking.talk.key), []);
      assert.deepEqual(await stage.holdfast.read.headers("ownerWait"), []);
      await stage.death();
      const question = await asking.question("open");
      assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
      await asking.talk.is("idle");
      const calls = await stage.holdfast.delegations(asking.talk.key);
      assert.deepEqual(
        calls.map(({ key, appliedTimes }) => [key, appliedTimes]),
        [[question, 1]],
      );
      assert.equal((await stage.holdfast.read.headers("ownerWait")).length, 1);
      return asking.talk.evidence();
    },
  },
  (world) => [{ point: "before-commit", match: keyOf(world, "unparked"), nth: 2, act: "kill" }],
  (world) => tell(world, "unparked", steps([ask("may I?")])),
);

/** Rows about the death of a node at one place, a fleet each. */
export const DEATH_GROUPS: readonly RowGroup[] = [effects, unstored, untold, unresumed, unparked];
