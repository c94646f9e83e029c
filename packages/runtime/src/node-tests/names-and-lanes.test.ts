import { ActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

const HOSTILE = ["a.b", "~", "two words", "*", ">", "ü🎈", "x".repeat(4096), "../up", "$KV", "a", "A"];

describe("names", () => {
  test("F24, x12, x13: children with any id have addresses that every store takes, and end under their own names", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    const keys: string[] = [];
    for (const id of HOSTILE) {
      await fleet.send(boss, { type: "DELEGATE", id, input: {} });
      keys.push(await fleet.child(boss, id));
    }
    expect(new Set(keys).size).toBe(HOSTILE.length);
    for (const key of keys) {
      expect(ActorKey.safeParse(key).success, key).toBe(true);
      expect(key.length).toBeLessThan(100);
      await fleet.until(`${key} is there`, () => fleet.record(key) !== undefined);
      await fleet.send(key, { type: "FINISH" });
    }
    const children = () => fleet.record(boss)?.snapshot.children ?? {};
    await fleet.until("all are settled", () =>
      HOSTILE.every((id) => [undefined, "done"].includes(children()[id]?.status)),
    );
    await fleet.until("each result was applied", () => resultsOf(fleet, boss) === HOSTILE.length);
  });

  test("F13: a child id that is used again is another child, whatever became of the first", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    const keys: string[] = [];
    for (const round of [1, 2, 3]) {
      await fleet.send(boss, { type: "DELEGATE", id: "again", input: {} });
      const known = new Set(keys);
      const current = (): string | undefined => fleet.record(boss)?.snapshot.children["again"]?.key;
      await fleet.until(`child ${round} is decided`, () => !known.has(current() ?? keys[0] ?? ""));
      const key = await fleet.child(boss, "again");
      keys.push(key);
      await fleet.until("it is there", () => fleet.record(key) !== undefined);
      await fleet.send(key, { type: "FINISH" });
      await fleet.until("its result was applied", () => resultsOf(fleet, boss) === round);
    }
    expect(new Set(keys).size).toBe(3);
  });
});

describe("the control lane", () => {
  test("F30: a stop reaches an actor whose messages are held up, and none of them is applied after it", async () => {
    const fleet = new MemoryFleet();
    const node = await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
    const from = { key: "d-0.talker.far", genesis: "g1:9" };
    for (const n of [2, 3, 4])
      await fleet.publishInside(
        helper,
        { v: 1, kind: "send", id: `w@${n}`, from: { ...from, n }, event: { type: "WORD", n } },
        `w${n}`,
      );
    const isSetAside = () => fleet.broker.messagesOf("parked", helper).length === 3;
    await fleet.until("they are set aside behind a gap", isSetAside);
    const genesis = fleet.record(boss)?.genesis ?? "";
    const stop = { v: 1, kind: "stop", id: "stop@1", from: { key: boss, genesis, childId: "h", sync: false } } as const;
    const stored = await fleet.outsider.log.publish("control", helper, fleet.codec.encodeEnvelope(stop), "stop@1");
    expect(stored.kind).toBe("accepted");
    await fleet.until("it has stopped", () => fleet.record(helper)?.status === "stopped");
    await fleet.publishInside(
      helper,
      { v: 1, kind: "send", id: "w@1", from: { ...from, n: 1 }, event: { type: "WORD", n: 1 } },
      "w1",
    );
    await fleet.clock.advance(2000);
    expect(fleet.context(helper)).toMatchObject({ words: [] });
    expect(fleet.record(helper)?.status).toBe("stopped");
    expect([...node.node.partitions.values()].every(({ signal }) => !signal.aborted)).toBe(true);
  });
});

describe("what a takeover writes", () => {
  test("F44: nothing per actor: an idempotent job is asked for again without a write, its outcome is the first commit", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const keys: string[] = [];
    for (const id of ["e1", "e2", "e3"]) {
      const key = await fleet.born("errand", id);
      await fleet.send(key, { type: "RUN", src: "free" });
      keys.push(key);
    }
    await fleet.until("all jobs run", () => fleet.desk.of("free", "n1").length === 3);
    const before = keys.map((key) => fleet.revisions(key).length);
    first.kill();
    await fleet.alone("n2");
    await fleet.until("all jobs run again", () => fleet.desk.of("free", "n2").length === 3);
    expect(keys.map((key) => fleet.broker.writesOf(key).length)).toEqual(before);
    for (const job of fleet.desk.of("free", "n2")) job.finish("done");
    await fleet.until("all are over", () => keys.every((key) => fleet.record(key)?.snapshot.value === "waiting"));
    expect(keys.map((key) => fleet.header(key)?.writer.startsWith("n2:"))).toEqual([true, true, true]);
  });

  test("F52: what a refused commit had decided is nowhere: the next message finds the stored state", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    const refused = fleet.broker.faults.nextCommit({ kind: "refuse", giveUp: true }, { about: key });
    const one = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.happened("the commit was refused", refused.happened);
    const two = await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("both were answered", () => [one, two].every((id) => fleet.outcomes(id).length > 0));
    expect(fleet.context(key)).toEqual({ seen: [1, 2] });
    expect(fleet.revisions(key).at(-1)).toBe(3);
  });
});

function resultsOf(fleet: MemoryFleet, boss: string): number {
  const context = fleet.context(boss);
  return typeof context === "object" && context !== null && "results" in context && Array.isArray(context.results)
    ? context.results.length
    : 0;
}
