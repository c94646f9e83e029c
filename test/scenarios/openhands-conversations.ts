import { strict as assert } from "node:assert";
import { defineAgent } from "@holdfast/agents";
import { waitUntil } from "../harness/wait-until.ts";
import { codeOf, RowTalk } from "./row-talk.ts";
import type { RowTest } from "./row-run.ts";

const echo = defineAgent({ name: "talker", model: "echo" });

/** Rows about conversations and the faults that were reported of them. */
export const CONVERSATION_ROWS: Readonly<Record<string, RowTest>> = {
  "create-once": async (stage) => {
    const talk = new RowTalk(stage, "create-once");
    const again = () => stage.holdfast.conversations.start(talk.id, { agent: echo, prompt: "hello" });
    await talk.start("hello");
    assert.equal((await again()).kind, "ignored");
    await stage.death();
    assert.equal((await again()).kind, "ignored");
    await talk.say("afterwards");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "afterwards", "afterwards"]);
    return talk.evidence();
  },

  "create-other-content": async (stage) => {
    const talk = new RowTalk(stage, "create-other");
    const other = () => stage.holdfast.conversations.start(talk.id, { agent: echo, prompt: "something else" });
    await talk.start("hello");
    assert.equal(await codeOf(other()), "HF-3012");
    await stage.death();
    assert.equal(await codeOf(other()), "HF-3012");
    await talk.say("afterwards");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "afterwards", "afterwards"]);
    return talk.evidence();
  },

  "send-while-running": async (stage) => {
    const talk = new RowTalk(stage, "send-running");
    await talk.startHeld("first of send-running");
    await talk.say("meanwhile of send-running");
    await stage.death();
    await talk.say("later of send-running");
    await stage.fleet.model.release("of send-running");
    await talk.hears("result of later of send-running");
    assert.deepEqual((await talk.said()).slice(0, 4), [
      "first of send-running",
      "result of first of send-running",
      "meanwhile of send-running",
      "later of send-running",
    ]);
    return talk.evidence();
  },

  "pause-between-steps": async (stage) => {
    const talk = new RowTalk(stage, "pause-steps");
    await talk.startHeld("work of pause-steps");
    await talk.say("more of pause-steps");
    await talk.tell("pause");
    await stage.death();
    await stage.fleet.model.release("of pause-steps");
    await talk.is("paused");
    assert.ok(!(await talk.said()).includes("result of more of pause-steps"));
    return talk.evidence();
  },

  resume: async (stage) => {
    const talk = new RowTalk(stage, "resume");
    await talk.startHeld("work of resume");
    await talk.tell("interrupt");
    await talk.is("paused");
    await stage.death();
    await stage.fleet.model.release("of resume");
    await talk.tell("resume");
    await talk.hears("result of work of resume");
    await talk.is("idle");
    return talk.evidence();
  },

  "interrupt-mid-call": async (stage) => {
    const talk = new RowTalk(stage, "interrupt");
    await talk.startHeld("work of interrupt");
    await talk.tell("interrupt");
    await talk.is("paused");
    await stage.death();
    await talk.say("else of interrupt");
    await stage.fleet.model.release("else of interrupt");
    await talk.hears("result of else of interrupt");
    assert.ok(!(await talk.said()).includes("result of work of interrupt"));
    return talk.evidence();
  },

  "pause-without-effect": (stage) => pauseAtRest(stage, "pause-rest"),
  "fault-phantom-pause": (stage) => pauseAtRest(stage, "phantom-pause"),

  delete: async (stage) => {
    const talk = new RowTalk(stage, "delete");
    await talk.startHeld("work of delete");
    await stage.death();
    await talk.tell("delete");
    await talk.is("closed");
    assert.equal(await codeOf(stage.holdfast.conversations.send(talk.id, "anybody?", { messageId: "m" })), "HF-3009");
    return talk.evidence();
  },

  fork: async (stage) => {
    const origin = new RowTalk(stage, "fork-origin");
    await origin.start("hello");
    const fork = new RowTalk(stage, "fork");
    const rev = (await origin.entries()).length;
    await stage.holdfast.conversations.fork(origin.id, { as: fork.id, rev, prompt: "apart" });
    await fork.is("idle");
    const before = await origin.said();
    await stage.death();
    await fork.say("further");
    await fork.is("idle");
    assert.equal((await fork.said()).join(), "hello,hello,apart,apart,further,further");
    assert.deepEqual(await origin.said(), before);
    return fork.evidence();
  },

  "final-answer": async (stage) => {
    const talk = new RowTalk(stage, "final-answer");
    await talk.start("one");
    await stage.death();
    assert.equal((await stage.holdfast.conversations.finalAnswer(talk.id))?.text, "one");
    await talk.say("two");
    await talk.is("idle");
    await talk.hears("two");
    assert.equal((await stage.holdfast.conversations.finalAnswer(talk.id))?.text, "two");
    return talk.evidence();
  },

  "ask-aside": async (stage) => {
    const talk = new RowTalk(stage, "aside");
    await talk.startHeld("work of aside");
    const { rev } = (await talk.entries()).at(-1) ?? {};
    await stage.death();
    const asked = stage.holdfast.conversations.askAside(talk.id, "question of aside");
    await stage.fleet.model.release("question of aside");
    assert.equal(await asked, "result of question of aside");
    assert.equal((await talk.entries()).at(-1)?.rev, rev);
    await stage.fleet.model.release("work of aside");
    await talk.is("idle");
    return talk.evidence();
  },

  condense: async (stage) => {
    const talk = new RowTalk(stage, "condense");
    const shown = async (lastUser: string): Promise<unknown> =>
      (await stage.fleet.model.requests()).find((request) => request.lastUser === lastUser)?.["messageCount"];
    await talk.start("hello");
    await talk.say("one of condense ".repeat(100), "long");
    await talk.say("two of condense");
    await talk.hears("two of condense");
    await talk.is("idle");
    assert.equal(await shown("two of condense"), 5);
    await talk.tell("condense");
    await waitUntil("it is condensed", async () => (await talk.said()).length === 1);
    await talk.is("idle");
    await stage.death();
    await talk.say("three of condense");
    await talk.is("idle");
    assert.equal(await shown("three of condense"), 2);
    const [summary, ...since] = await talk.said();
    assert.match(summary ?? "", /^Summary/);
    assert.deepEqual(since, ["three of condense", "three of condense"]);
    return talk.evidence();
  },

  "switch-model": (stage) => switchModel(stage, "switch"),
  "fault-switch-reverts": (stage) => switchModel(stage, "reverting"),

  "list-by-tag": async (stage) => {
    const talk = new RowTalk(stage, "listed");
    const { holdfast } = stage;
    await holdfast.conversations.start(talk.id, { agent: echo, prompt: "hello", tags: { row: "listed" } });
    await talk.is("idle");
    const listed = async (): Promise<readonly string[]> =>
      (await holdfast.read.headers("conversation"))
        .filter(({ list }) => list["tag.row"] === "listed")
        .map(({ key }) => key);
    assert.deepEqual(await listed(), [talk.key]);
    await stage.death();
    assert.deepEqual(await listed(), [talk.key]);
    await talk.say("more");
    await talk.is("idle");
    assert.deepEqual(await listed(), [talk.key]);
    return talk.evidence();
  },

  describe: async (stage) => {
    const talk = new RowTalk(stage, "described");
    await talk.start("hello");
    await talk.tell("describe", { title: "Another title", tags: { team: "blue" } });
    await stage.death();
    await talk.say("more");
    await talk.is("idle");
    assert.deepEqual([(await talk.list())["title"], (await talk.list())["tag.team"]], ["Another title", "blue"]);
    return talk.evidence();
  },

  "send-without-run": async (stage) => {
    const talk = new RowTalk(stage, "without-run");
    await talk.start("hello");
    await stage.holdfast.conversations.send(talk.id, "later", { messageId: "later", run: false });
    await stage.death();
    assert.deepEqual(await talk.said(), ["hello", "hello", "later"]);
    await talk.tell("run");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "later", "later"]);
    return talk.evidence();
  },

  "run-once": async (stage) => {
    const talk = new RowTalk(stage, "run-once");
    await talk.start("hello");
    await stage.holdfast.conversations.send(talk.id, "later", { messageId: "later", run: false });
    await stage.death();
    const run = () => stage.holdfast.send({ type: "conversation", id: talk.id }, { type: "run" });
    await Promise.all([run(), run(), run()]);
    await talk.hears("later");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "later", "later"]);
    return talk.evidence();
  },

  "no-replay": async (stage) => {
    const talk = new RowTalk(stage, "no-replay");
    await talk.start("only once of no-replay");
    await stage.death();
    await talk.say("and this of no-replay");
    await talk.is("idle");
    const asked = (await stage.fleet.model.requests()).filter(({ lastUser }) => lastUser.endsWith("of no-replay"));
    assert.deepEqual(
      asked.map(({ lastUser }) => lastUser),
      ["only once of no-replay", "and this of no-replay"],
    );
    return talk.evidence();
  },

  "usage-counted": async (stage) => {
    const talk = new RowTalk(stage, "usage");
    await talk.start("one");
    await stage.death();
    await talk.say("two");
    await talk.is("idle");
    assert.equal(await talk.modelCalls(), 2);
    return talk.evidence();
  },

  "idle-actor-wakes": async (stage) => {
    const talk = new RowTalk(stage, "idle-wakes");
    await talk.start("hello");
    await stage.death();
    await talk.say("good morning");
    await talk.hears("good morning");
    await talk.is("idle");
    return talk.evidence();
  },

  "fault-idle-but-busy": async (stage) => {
    const talk = new RowTalk(stage, "idle-busy");
    await talk.start("hello");
    const count = 10;
    for (let n = 0; n < count; n += 1) await talk.say(`before ${n}`);
    await stage.death();
    for (let n = 0; n < count; n += 1) await talk.say(`after ${n}`);
    await talk.hears(`after ${count - 1}`);
    await talk.is("idle");
    const said = await talk.said();
    for (let n = 0; n < count; n += 1)
      for (const when of ["before", "after"]) assert.ok(said.includes(`${when} ${n}`), `${when} ${n}`);
    return talk.evidence();
  },

  "message-once": async (stage) => {
    const talk = new RowTalk(stage, "message-once");
    await talk.start("hello");
    await talk.say("once", "the-same");
    await talk.is("idle");
    await stage.death();
    await talk.say("once", "the-same");
    await talk.say("last");
    await talk.hears("last");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "once", "once", "last", "last"]);
    return talk.evidence();
  },
};

const pauseAtRest = async (stage: Parameters<RowTest>[0], id: string) => {
  const talk = new RowTalk(stage, id);
  await talk.start("hello");
  await stage.holdfast.send({ type: "conversation", id }, { type: "pause" });
  await stage.death();
  await talk.say("next");
  await talk.hears("next");
  await talk.is("idle");
  assert.deepEqual(await talk.said(), ["hello", "hello", "next", "next"]);
  return talk.evidence();
};

const switchModel = async (stage: Parameters<RowTest>[0], id: string) => {
  const talk = new RowTalk(stage, id);
  await talk.start("hello");
  await talk.tell("switchModel", { model: "blocker" });
  await stage.death();
  await talk.say(`later of ${id}`);
  await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: `later of ${id}` });
  await stage.fleet.model.release(`later of ${id}`);
  await talk.hears(`result of later of ${id}`);
  return talk.evidence();
};
