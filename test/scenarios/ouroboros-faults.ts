import { strict as assert } from "node:assert";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { parseActorKey, type PlainEvent } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { NODES } from "./openhands-fleet.ts";
import { blocker, chiefOf, steps, task } from "./row-agents.ts";
import { Asking } from "./row-asking.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const Results = z.array(z.looseObject({ result: z.string() }));

const requestsOf = async ({ fleet }: RowStage, text: string) =>
  (await fleet.model.requests()).filter(({ lastUser }) => lastUser.endsWith(text));

/** A puppet that has given work to held sub-agents, one for each text. @param atOnce  how many of them may work at the same time */
async function delegating(stage: RowStage, id: string, texts: readonly string[], atOnce?: number): Promise<RowTalk> {
  const talk = new RowTalk(stage, id);
  const isQueued = atOnce !== undefined;
  const chief = chiefOf([blocker], isQueued ? { maxRunningTasks: atOnce } : {}, { resumable: isQueued });
  await talk.begin({ ...chief, prompt: steps(texts.map((text) => task("blocker", `${text} of ${id}`))) });
  await stage.fleet.model.wait({
    model: "blocker",
    state: "blocked",
    count: atOnce ?? texts.length,
    match: `of ${id}`,
  });
  return talk;
}

/** A message that is stored while nobody is there to answer. */
const leave = ({ holdfast }: RowStage, key: string, event: PlainEvent) => holdfast.send(key, event, { timeoutMs: 300 });

const tasksOf = async ({ holdfast }: RowStage, { key }: RowTalk) =>
  (await holdfast.delegations(key)).filter(({ src }) => src === "task");

const statusOf = async ({ holdfast }: RowStage, key: string): Promise<unknown> =>
  (await holdfast.read.header(key))?.list["status"];

/** Everything in a conversation's journal is of one writer per revision, however often it was told. */
async function hasOneWriterPerStep({ holdfast }: RowStage, key: string): Promise<void> {
  const writers = new Map<number, string>();
  for (const { entries } of await holdfast.read.journalAsStored(key))
    for (const { rev, node } of entries) {
      assert.equal(writers.get(rev) ?? node, node, `revision ${rev}`);
      writers.set(rev, node);
    }
}

/** Faults that were reported of systems of this kind, and what cancelling does, on the fleet that is killed. */
export const KILLED_FAULTS: Readonly<Record<string, RowTest>> = {
  "fault-children-of-dead-parent": async (stage) => {
    const dead = await delegating(stage, "dead-parent", ["a", "b", "c", "d"], 2);
    const kept = await delegating(stage, "kept-parent", ["a", "b", "c", "d"], 2);
    const begun = new Set((await requestsOf(stage, "of dead-parent")).map(({ lastUser }) => lastUser));
    await stage.until("absence");
    await leave(stage, dead.key, { type: "delete" });
    await stage.death();
    await dead.is("closed");
    await stage.fleet.model.release("of kept-parent");
    await kept.is("idle");
    assert.deepEqual(
      Results.parse(await kept.results()).map(({ result }) => result),
      ["a", "b", "c", "d"].map((text) => `result of ${text} of kept-parent`),
    );
    for (const { lastUser } of await requestsOf(stage, "of dead-parent")) assert.ok(begun.has(lastUser), lastUser);
    for (const { key } of await tasksOf(stage, dead)) assert.equal(await statusOf(stage, key), "cancelled");
    return kept.evidence();
  },

  "fault-cancel-erases-result": async (stage) => {
    const id = "erased";
    const talk = await delegating(stage, id, ["early", "lost", "raced"]);
    await stage.fleet.model.release(`early of ${id}`);
    await waitUntil("the early one has its result", async () => (await tasksOf(stage, talk))[0]?.applied !== undefined);
    const [early, lost, raced] = await tasksOf(stage, talk);
    const cancel = (callId = "") => ({ type: "cancelTask", callId });
    await stage.until("absence");
    for (const call of [early, lost]) await leave(stage, talk.key, cancel(call?.callId));
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: `raced of ${id}` });
    await Promise.all([
      stage.fleet.model.release(`raced of ${id}`),
      stage.holdfast.send(talk.key, cancel(raced?.callId)),
      stage.holdfast.send(raced?.key ?? "", { type: "cancel" }),
    ]);
    await talk.is("idle");
    const after = await waitUntil("each of them has told how it ended", async () => {
      const tasks = await tasksOf(stage, talk); // a call that is cancelled has its result before its task has ended
      return tasks.every(({ applied }) => applied !== undefined) && tasks;
    });
    assert.deepEqual(
      after.map(({ appliedTimes }) => appliedTimes),
      [1, 1, 1],
    );
    const statuses = await Promise.all(after.map(({ key }) => statusOf(stage, key)));
    assert.deepEqual(statuses.slice(0, 2), ["completed", "cancelled"]);
    assert.ok(["completed", "cancelled"].includes(String(statuses[2])));
    const answers = (await talk.said()).filter(
      (text) => text.startsWith("[") && text.includes(`result of early of ${id}`),
    );
    assert.equal(answers.length, 1); // told to the owner once
    return talk.evidence();
  },

  "cancel-intent-durable": async (stage) => {
    const talk = await delegating(stage, "intent", ["unwanted", "wanted"]);
    const [unwanted, wanted] = await tasksOf(stage, talk);
    await stage.until("absence");
    const sent = await leave(stage, talk.key, { type: "cancelTask", callId: unwanted?.callId });
    assert.equal(sent.kind, "accepted");
    await stage.death();
    await waitUntil("it is cancelled", async () => (await statusOf(stage, unwanted?.key ?? "")) === "cancelled");
    await stage.fleet.model.release("of intent");
    await talk.is("idle");
    assert.equal(await statusOf(stage, wanted?.key ?? ""), "completed");
    assert.equal(await statusOf(stage, unwanted?.key ?? ""), "cancelled");
    return talk.evidence();
  },

  "cancel-after-completion": async (stage) => {
    const talk = await delegating(stage, "completed", ["done"]);
    await stage.fleet.model.release("of completed");
    await talk.is("idle");
    const [call] = await tasksOf(stage, talk);
    const key = call?.key ?? "";
    const stored = () =>
      waitUntil("it has ended and said so", async () => {
        const actor = await stage.holdfast.read.actor(key);
        return actor?.record.status === "done" && actor.record.outbox.length === 0 && actor.record;
      });
    const before = await stored();
    const cancelled = async (): Promise<void> => {
      assert.equal((await stage.holdfast.send(key, { type: "cancel" })).kind, "refused");
      await stage.holdfast.send(talk.key, { type: "cancelTask", callId: call?.callId });
    };
    await cancelled();
    await stage.death();
    await cancelled();
    await talk.say("and on");
    await talk.is("idle");
    assert.deepEqual(await stored(), before);
    assert.equal((await tasksOf(stage, talk))[0]?.appliedTimes, 1);
    return talk.evidence();
  },

  "cancel-cascade": async (stage) => {
    const talk = new RowTalk(stage, "cascade");
    const middle = withDelegates(defineAgent({ name: "middle", model: "puppet" }), [blocker]);
    const { agent, agents } = chiefOf([middle, blocker]);
    const below = steps([task("blocker", "below of cascade")]);
    const calls = [task("middle", below), task("blocker", "beside of cascade")];
    await talk.begin({ agent, agents, prompt: steps(calls) });
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 2, match: "of cascade" });
    const family = await tasksOf(stage, talk);
    const [over] = family.filter(({ conversation }) => conversation === talk.key);
    const under = family.find(({ conversation }) => conversation !== talk.key);
    const beside = family.filter(({ conversation }) => conversation === talk.key)[1];
    await stage.until("absence");
    await leave(stage, talk.key, { type: "cancelTask", callId: over?.callId });
    await stage.death();
    for (const call of [over, under])
      await waitUntil("it is cancelled", async () => (await statusOf(stage, call?.key ?? "")) === "cancelled");
    assert.equal(await statusOf(stage, beside?.key ?? ""), "running");
    await stage.fleet.model.release("of cascade");
    await talk.is("idle");
    assert.equal(await statusOf(stage, beside?.key ?? ""), "completed");
    return talk.evidence();
  },

  "fault-running-for-ever": async (stage) => {
    const talk = await delegating(stage, "bounced", ["work"]);
    const [call] = await tasksOf(stage, talk);
    const key = call?.key ?? "";
    const ownerOf = async (): Promise<string> => {
      const { leases } = await stage.holdfast.read.overview();
      return leases.find(({ partition }) => partition === parseActorKey(key).partition)?.holder.split(":")[0] ?? "";
    };
    assert.equal(await ownerOf(), NODES.killed);
    await stage.death();
    await waitUntil("somebody else owns it", async () => (await ownerOf()) === NODES.after);
    assert.equal(await statusOf(stage, key), "running");
    await stage.fleet.model.release("of bounced");
    await talk.is("idle");
    assert.equal(await statusOf(stage, key), "completed");
    return talk.evidence();
  },

  "fault-dormant-invoke": async (stage) => {
    const talk = new RowTalk(stage, "dormant");
    await talk.startHeld("work of dormant");
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "work of dormant" });
    await talk.say("meanwhile of dormant"); // stored again with the call under way
    await stage.fleet.model.release("of dormant");
    await talk.hears("result of meanwhile of dormant");
    await talk.is("idle");
    const first = (await requestsOf(stage, "work of dormant")).filter(({ lastUser }) => lastUser === "work of dormant");
    assert.equal(first.length, 2);
    assert.equal(new Set(first.map(({ idempotencyKey }) => idempotencyKey)).size, 1);
    const done = (await talk.entries()).filter(({ event }) => event.type.startsWith("xstate.done.actor.model-"));
    assert.equal(done.length, 2);
    return talk.evidence();
  },

  "fault-children-not-storable": async (stage) => {
    const talk = new RowTalk(stage, "three-levels");
    const middle = withDelegates(defineAgent({ name: "middle", model: "puppet" }), [blocker]);
    const { agent, agents } = chiefOf([middle]);
    const deep = steps([task("blocker", "deep of three-levels")]);
    await talk.begin({ agent, agents: { ...agents, blocker }, prompt: steps([task("middle", deep)]) });
    const arrived = (count: number) =>
      stage.fleet.model.wait({ model: "blocker", state: "arrived", count, match: "deep of three-levels" });
    await arrived(1);
    await stage.death();
    await arrived(2);
    await talk.say("stored again"); // with its children, by the one that has restored it
    await stage.until("crash");
    await arrived(3);
    await talk.say("and again");
    await stage.fleet.model.release("of three-levels");
    await talk.hears("and again");
    await talk.is("idle");
    const calls = await tasksOf(stage, talk);
    assert.deepEqual(
      calls.map(({ appliedTimes, applied }) => [appliedTimes, applied?.outcome]),
      [
        [1, "done"],
        [1, "done"],
      ],
    );
    assert.ok((await talk.said()).some((text) => text.includes("result of deep of three-levels")));
    return talk.evidence();
  },

  "fault-recovered-twice": async (stage) => {
    const asking = new Asking(stage, "recovered-twice");
    const question = await asking.ask("go on?");
    const held = new RowTalk(stage, "recovered-job");
    await held.startHeld("work of recovered-job");
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "of recovered-job" });
    await stage.until("crash");
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 3, match: "of recovered-job" });
    assert.equal(await asking.question("open"), question);
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
    await stage.fleet.model.release("of recovered-job");
    for (const talk of [asking.talk, held]) await talk.is("idle");
    assert.equal((await requestsOf(stage, "work of recovered-job")).length, 3); // each of the dead ones, and one of the two
    for (const key of [asking.talk.key, held.key, question]) await hasOneWriterPerStep(stage, key);
    const [call] = await stage.holdfast.delegations(asking.talk.key);
    assert.deepEqual([call?.key, call?.appliedTimes], [question, 1]);
    return asking.talk.evidence();
  },

  "fault-conflict-misread": async (stage) => {
    const talk = new RowTalk(stage, "conflict");
    await talk.start("hello");
    await stage.until("crash");
    const titles: string[] = [];
    const over = new AbortController();
    const describing = (async () => {
      while (!over.signal.aborted) {
        const title = `title ${titles.push("") - 1}`;
        titles[titles.length - 1] = title;
        await waitUntil(`${title} is taken`, () => described(stage, talk, title), { timeoutMs: 60_000 });
      }
    })();
    await stage.until("outage"); // the broker is killed in the middle of it
    over.abort();
    await describing;
    const told = (await talk.entries()).flatMap(({ event }) => (event.type === "describe" ? [event["title"]] : []));
    assert.deepEqual(told, titles);
    assert.equal((await talk.list())["title"], titles.at(-1));
    await hasOneWriterPerStep(stage, talk.key);
    return talk.evidence();
  },

  "fault-dispatched-beside-living": async (stage) => {
    const asking = new Asking(stage, "beside");
    const question = await asking.ask("still there?");
    await stage.death();
    for (const turn of ["crash", "outage", "standstill"] as const) await stage.until(turn);
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
    await asking.talk.is("idle");
    const entries = await asking.talk.entries();
    await stage.until("return");
    assert.notEqual((await asking.reply(question, "a2", "no")).kind, "applied");
    await asking.talk.say("and on");
    await asking.talk.is("idle");
    assert.deepEqual((await asking.talk.entries()).slice(0, entries.length), entries);
    for (const key of [asking.talk.key, question]) await hasOneWriterPerStep(stage, key);
    return asking.talk.evidence();
  },
};

/** Sends a title until somebody has said that it is stored; always as the same message. */
async function described({ holdfast }: RowStage, { key }: RowTalk, title: string): Promise<boolean> {
  const event = { type: "describe", title };
  const sent = await holdfast.send(key, event, { idempotencyKey: title.replaceAll(" ", "-"), timeoutMs: 5000 });
  return sent.kind !== "refused";
}
