import { strict as assert } from "node:assert";
import { defineAgent } from "@holdfast/agents";
import { parseActorKey } from "@holdfast/protocol";
import { waitUntil } from "../harness/wait-until.ts";
import { CRASHES_AT, FATAL, NODES } from "./openhands-fleet.ts";
import { blocker, chiefOf, steps, task } from "./row-agents.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const echo = defineAgent({ name: "echo", model: "echo" });

/** A conversation that was answered by the node that died and by the one after it. */
async function onBoth(stage: RowStage, id: string): Promise<RowTalk> {
  const talk = new RowTalk(stage, id);
  await talk.start("hello");
  await stage.death();
  await answered(talk, "again");
  return talk;
}

async function answered(talk: RowTalk, text: string): Promise<void> {
  await talk.say(text);
  await talk.is("idle");
  assert.equal((await talk.said()).at(-1), text);
}

const requestsFor = async ({ fleet }: RowStage, text: string) =>
  (await fleet.model.requests()).filter(({ lastUser }) => lastUser === text);

/** Every revision of its journal is of one node, however often it was told. */
async function hasOneWriterPerStep({ holdfast }: RowStage, { key }: RowTalk): Promise<void> {
  const writers = new Map<number, string>();
  for (const { entries } of await holdfast.read.journalAsStored(key))
    for (const { rev, node } of entries) {
      assert.equal(writers.get(rev) ?? node, node, `revision ${rev}`);
      writers.set(rev, node);
    }
}

/** Rows about who owns what, when owners die, stand still, come back, or begin together. */
export const OWNERSHIP_ROWS: Readonly<Record<string, RowTest>> = {
  "owner-shown": async (stage) => {
    const talk = new RowTalk(stage, "owner-shown");
    const { read } = stage.holdfast;
    await talk.start("hello");
    const { partition } = parseActorKey(talk.key);
    await stage.until("absence");
    const { nodes, leases } = await read.overview();
    const lease = leases.find((each) => each.partition === partition);
    assert.ok(lease?.holder.startsWith(`${NODES.killed}:`), lease?.holder);
    assert.ok(nodes.some(({ name }) => name === NODES.killed));
    assert.ok((await read.headers("conversation")).some((header) => header.key === talk.key));
    assert.deepEqual(await talk.said(), ["hello", "hello"]);
    await stage.death();
    await answered(talk, "again");
    return talk.evidence();
  },

  "fault-slow-takeover": async (stage) => {
    const talk = new RowTalk(stage, "slow-takeover");
    await talk.start("hello");
    await talk.entries();
    await stage.until("absence");
    await stage.death();
    const startedAtMs = performance.now();
    const taken = new AbortController();
    let reads = 0;
    const reading = (async () => {
      for (; !taken.signal.aborted; reads += 1) assert.equal((await talk.said())[0], "hello");
    })();
    await talk.say("again");
    const tookMs = performance.now() - startedAtMs;
    taken.abort();
    await reading;
    await talk.is("idle");
    assert.ok(reads > 0);
    assert.ok(tookMs < 20_000, `${tookMs} ms`);
    return talk.evidence();
  },

  "fault-between-two-writes": async (stage) => {
    const talk = await onBoth(stage, CRASHES_AT);
    const before = (await talk.entries()).length;
    await stage.until("crash");
    await talk.hears(FATAL.text);
    await talk.is("idle");
    await answered(talk, "and on");
    const said = ["hello", "again", FATAL.text, "and on"];
    assert.deepEqual(
      await talk.said(),
      said.flatMap((text) => [text, text]),
    );
    const fatal = (await talk.entries())[before];
    assert.deepEqual([fatal?.event.type, fatal?.node], [FATAL.type, NODES.after]); // stored by the one that died of it
    assert.equal((await requestsFor(stage, FATAL.text)).length, 1);
    return talk.evidence();
  },

  "fault-two-owners": async (stage) => {
    const talk = await onBoth(stage, "two-owners");
    await stage.until("crash");
    const texts = ["one of two-owners", "two of two-owners", "three of two-owners"];
    for (const text of texts) await answered(talk, text);
    for (const text of texts) assert.equal((await requestsFor(stage, text)).length, 1);
    const { partition } = parseActorKey(talk.key);
    const { leases } = await stage.holdfast.read.fleet();
    assert.equal(leases.filter((lease) => lease.partition === partition).length, 1);
    await hasOneWriterPerStep(stage, talk);
    return talk.evidence();
  },

  "second-restart": async (stage) => {
    const talk = new RowTalk(stage, "second-restart");
    const { holdfast, fleet } = stage;
    const names = ["one of second-restart", "two of second-restart"];
    await talk.begin({ ...chiefOf([blocker]), prompt: steps(names.map((name) => task("blocker", name))) });
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 2, match: "of second-restart" });
    await stage.death();
    await fleet.model.release("of second-restart");
    await talk.is("idle");
    const family = async () => {
      const calls = await holdfast.delegations(talk.key);
      return Promise.all(
        calls.map(async ({ key, ...call }) => ({ ...call, rev: (await holdfast.read.header(key))?.rev })),
      );
    };
    const [before, entries, asked] = [await family(), await talk.entries(), await fleet.model.requests()];
    await stage.until("crash");
    for (const { key } of await holdfast.delegations(talk.key))
      assert.equal((await holdfast.send(key, { type: "cancel" })).kind, "refused"); // their new owner knows them
    await answered(talk, "and now?");
    assert.deepEqual(await family(), before);
    assert.deepEqual((await talk.entries()).slice(0, entries.length), entries);
    const since = (await fleet.model.requests()).slice(asked.length);
    assert.ok(!since.some(({ lastUser }) => lastUser.endsWith("of second-restart")));
    return talk.evidence();
  },

  "fault-counters-zero": async (stage) => {
    const talk = await onBoth(stage, "counters");
    await stage.until("outage");
    assert.equal(await talk.modelCalls(), 2);
    await answered(talk, "after the outage of counters");
    assert.equal(await talk.modelCalls(), 3);
    return talk.evidence();
  },

  "stale-owner": async (stage) => {
    const talk = await onBoth(stage, "stale-owner");
    for (const turn of ["crash", "outage", "standstill"] as const) await stage.until(turn);
    await answered(talk, "meanwhile"); // whoever was stopped reads it as well when it goes on
    const entries = await talk.entries();
    await stage.until("return");
    await answered(talk, "and on");
    assert.deepEqual((await talk.entries()).slice(0, entries.length), entries);
    assert.equal((await talk.said()).filter((text) => text === "meanwhile").length, 2);
    await hasOneWriterPerStep(stage, talk);
    return talk.evidence();
  },

  "fault-late-result": async (stage) => {
    const talk = await onBoth(stage, "late-result");
    await stage.until("outage");
    const text = "held of late-result";
    await talk.tell("switchModel", { model: "blocker" });
    await talk.say(text);
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: text });
    await stage.until("standstill");
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: text });
    await stage.fleet.model.release(text); // the answer to the first request waits in the socket of its node
    await talk.hears(`result of ${text}`);
    await talk.is("idle");
    await talk.tell("switchModel", { model: "echo" });
    const before = await talk.said();
    await stage.until("return");
    await answered(talk, "and on");
    assert.deepEqual(await talk.said(), [...before, "and on", "and on"]);
    await hasOneWriterPerStep(stage, talk);
    return talk.evidence();
  },

  "fault-silent-parent": async (stage) => {
    const talk = new RowTalk(stage, "silent");
    const text = "long work of silent";
    await talk.begin({ ...chiefOf([blocker, echo]), prompt: steps([task("echo", "short"), task("blocker", text)]) });
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: text });
    await waitUntil("the short one has its result", async () => {
      const [short] = await stage.holdfast.delegations(talk.key);
      return short?.applied !== undefined;
    });
    await stage.death();
    const { read } = stage.holdfast;
    const working = async () => {
      const [, long] = await stage.holdfast.delegations(talk.key);
      return (await read.header(long?.key ?? ""))?.list["status"];
    };
    const silentAt = (await talk.entries()).length;
    await stage.until("return");
    assert.equal(await working(), "running");
    assert.equal((await talk.entries()).length, silentAt);
    await stage.fleet.model.release(text);
    await talk.is("idle");
    assert.deepEqual(await talk.results(), ["short", `result of ${text}`]);
    return talk.evidence();
  },
};
