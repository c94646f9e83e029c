import { describe, expect, test } from "vitest";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { testActors } from "./test-actors.ts";

/** The least there is: 16 MiB for what is held. */
const SMALL = { memoryMb: 160 };
const KIB = 1024;

const cellsOf = ({ node }: MemoryProcess): number =>
  [...node.partitions.values()].reduce((sum, { cells }) => sum + cells.size, 0);
const pausesOf = ({ node }: MemoryProcess): number =>
  [...node.partitions.values()].reduce((sum, { pauses }) => sum + pauses, 0);
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `a${n}`);

/** Actors whose records are large. */
async function large(fleet: MemoryFleet, ids: readonly string[], kib: number): Promise<readonly string[]> {
  const keys = ids.map((id) => fleet.key("resting", id));
  for (const id of ids) await fleet.begin("resting", id);
  for (const key of keys) await fleet.send(key, { type: "ADD", n: "x".repeat(kib * KIB) });
  await fleet.until("all are stored", () => keys.every((key) => fleet.record(key)?.rev === 2));
  return keys;
}

describe("what a node holds in memory", () => {
  test("F43: reading stops at the limit, what is held stays below it, and every message is applied once and in order", async () => {
    const fleet = new MemoryFleet({ settings: SMALL });
    const process = await fleet.alone();
    const { memory } = process.node.flow;
    const ids = names(40);
    const keys = ids.map((id) => fleet.key("resting", id));
    for (const id of ids) await fleet.begin("resting", id);
    await fleet.until("all exist", () => keys.every((key) => fleet.record(key) !== undefined));
    const busy = keys.map((key) => process.holdAt("before-commit", key));
    const numbers = Array.from({ length: 10 }, (_, n) => n);
    const junk = "j".repeat(100 * KIB);
    for (const n of numbers) for (const key of keys) await fleet.send(key, { type: "ADD", n, junk });
    await fleet.clock.advance(5000);
    expect(memory.isFull).toBe(true);
    expect(memory.highest).toBeLessThan(memory.limitBytes + 4 * 101 * KIB);
    for (const { release } of busy) release();
    await fleet.until("all are applied", () => keys.every((key) => fleet.record(key)?.rev === 11));
    for (const key of keys) expect(fleet.context(key)).toEqual({ seen: numbers });
    expect(pausesOf(process)).toBeGreaterThan(0);
    expect([memory.isFull, memory.of("mail")]).toEqual([false, 0]);
  });

  test("H1: actors at rest leave when their records take too much, and answer as before when they are asked again", async () => {
    const fleet = new MemoryFleet({ settings: SMALL });
    const process = await fleet.alone();
    const { memory } = process.node.flow;
    const keys = await large(fleet, names(100), 64);
    await fleet.clock.advance(3000);
    expect(cellsOf(process)).toBeLessThan(60);
    expect(memory.total).toBeLessThan(memory.limitBytes);
    for (const key of keys) await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("all have answered", () => keys.every((key) => fleet.record(key)?.rev === 3));
    for (const key of keys) expect(fleet.context(key)).toEqual({ seen: ["x".repeat(64 * KIB), 2] });
  });

  test("an actor whose job runs may leave: the job goes on, and its outcome is applied once", async () => {
    const fleet = new MemoryFleet({ settings: { ...SMALL, sweepMs: 2000 } });
    const process = await fleet.alone();
    const errand = await fleet.born("errand", "e");
    await fleet.send(errand, { type: "RUN", src: "risky" });
    await fleet.until("the job runs", () => fleet.desk.of("risky").length === 1);
    await large(fleet, names(80), 64);
    const owner = [...process.node.partitions.values()].find(({ partition }) => errand.startsWith(`${partition}.`));
    await fleet.until("it has left memory", () => owner?.cells.has(errand) === false);
    await fleet.clock.advance(10_000);
    expect([fleet.desk.of("risky").length, fleet.desk.of("risky")[0]?.context.signal.aborted]).toEqual([1, false]);
    fleet.desk.of("risky")[0]?.finish("done");
    await fleet.until("the outcome is applied", () => fleet.record(errand)?.snapshot.value === "waiting");
    expect(fleet.context(errand)).toEqual({ results: ["done"], errors: [] });
  });

  test("an actor whose job waits may leave: it is loaded again when its turn has come", async () => {
    const fleet = new MemoryFleet({ settings: { ...SMALL, nodeJobConcurrency: 1 } });
    const process = await fleet.alone();
    const keys: string[] = [];
    for (const id of ["e", "f"]) {
      const key = await fleet.born("errand", id);
      await fleet.send(key, { type: "RUN", src: "keyed" });
      await fleet.until("it is decided", () => fleet.record(key)?.rev === 2);
      keys.push(key);
    }
    const waits = keys[1] ?? "";
    await large(fleet, names(80), 64);
    const owner = [...process.node.partitions.values()].find(({ partition }) => waits.startsWith(`${partition}.`));
    await fleet.until("it has left memory", () => owner?.cells.has(waits) === false);
    fleet.desk.of("keyed")[0]?.finish(1);
    await fleet.until("its job runs", () => fleet.desk.of("keyed").length === 2);
    expect(fleet.record(waits)?.snapshot.children["keyed"]).toMatchObject({ attempt: 1 });
    fleet.desk.of("keyed")[1]?.finish(2);
    await fleet.until("its outcome is applied", () => fleet.record(waits)?.snapshot.value === "waiting");
    expect(fleet.context(waits)).toEqual({ results: [2], errors: [] });
  });

  test("a job of an actor that left before the takeover had read its mailbox runs all the same", async () => {
    const fleet = new MemoryFleet({ settings: { ...SMALL, sweepMs: 600_000 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("the job runs", () => fleet.desk.of("free").length === 1);
    await fleet.clock.advance(5000); // its outbox is cleared
    first.kill();
    const second = await fleet.start("n2");
    const { memory } = second.node.flow;
    memory.hold("records", memory.limitBytes);
    second.log.lag();
    await fleet.until("it was restored", () =>
      [...second.node.partitions.values()].some(({ counters }) => counters.restored > 0),
    );
    await fleet.clock.advance(2000);
    expect([cellsOf(second), fleet.desk.of("free", "n2").length]).toEqual([0, 0]);
    memory.hold("records", -memory.limitBytes);
    await second.log.goOn();
    await fleet.until("it runs", () => fleet.desk.of("free", "n2").length === 1);
  });

  test("nothing is left in the account when the partitions are gone", async () => {
    const fleet = new MemoryFleet({ settings: SMALL });
    const process = await fleet.alone();
    await large(fleet, names(5), 64);
    const { memory } = process.node.flow;
    expect(memory.total).toBeGreaterThan(0);
    await fleet.happened("it has left", process.node.stop());
    expect([memory.of("mail"), memory.of("records"), memory.of("cells"), memory.of("jobs")]).toEqual([0, 0, 0, 0]);
  });
});

describe("actors that are worked on at the same time", () => {
  test("never more steps than the limit, and every message is applied", async () => {
    const fleet = new MemoryFleet({ settings: { stepConcurrency: 3 } });
    const process = await fleet.alone();
    const ids = names(30);
    const keys = ids.map((id) => fleet.key("resting", id));
    for (const id of ids) void fleet.begin("resting", id);
    await fleet.until("all exist", () => keys.every((key) => fleet.record(key) !== undefined));
    expect(process.node.flow.stepping.highest).toBe(3);
  });

  test("never more takeover loads than the limit of the whole node, whatever the number of partitions", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
    const first = await fleet.alone("n1");
    for (const id of names(30)) await fleet.born("tally", id);
    first.kill();
    const second = await fleet.alone("n2", { settings: { rehydrateConcurrency: 2 } });
    expect(second.node.flow.rehydrating.highest).toBe(2);
  });

  test("a type may have a mailbox of its own size", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1", {
      definitions: testActors(fleet.desk).map((definition) =>
        definition.type === "resting" ? { ...definition, limits: { mailboxMessages: 2 } } : definition,
      ),
    });
    const key = await fleet.born("resting", "a");
    const busy = process.holdAt("before-commit", key);
    for (let n = 0; n < 20; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.happened("it is busy", busy.reached);
    await fleet.clock.advance(100);
    const held = process.node.flow.memory.of("mail");
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(3 * 600);
    busy.release();
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 21);
  });
});
