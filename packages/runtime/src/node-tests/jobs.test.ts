import { parseActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { replayOf, storedEntries } from "./journal-replay.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

type Source = "free" | "keyed" | "risky";

/** An errand whose job runs on the first node. */
async function running(
  fleet: MemoryFleet,
  src: Source,
): Promise<{ readonly key: string; readonly first: MemoryProcess }> {
  const first = await fleet.alone("n1");
  const key = await fleet.born("errand", "e");
  await fleet.send(key, { type: "RUN", src });
  await fleet.until("the job runs", () => fleet.desk.of(src).length === 1);
  return { key, first };
}
const isOver = (fleet: MemoryFleet, key: string): boolean => fleet.record(key)?.snapshot.value === "waiting";
const reportOf = ({ node }: MemoryProcess, key: string) =>
  [...node.partitions.values()].flatMap(({ reports }) => reports.get(key) ?? [])[0];

describe("a job whose node died", () => {
  test("idempotent: runs again under its key", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "free");
    first.kill();
    await fleet.alone("n2");
    await fleet.until("it runs again", () => fleet.desk.of("free", "n2").length === 1);
    expect(new Set(fleet.desk.of("free").map(({ context }) => context.key)).size).toBe(1);
    fleet.desk.of("free", "n2")[0]?.finish(1);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: [1], errors: [] });
    await fleet.until("that is in the journal", () => storedEntries(fleet, key).length === 3);
    const [, decided, applied] = storedEntries(fleet, key);
    expect(decided).toMatchObject({ starts: [{ src: "free" }], writer: { incarnation: first.node.incarnation } });
    expect(applied).toMatchObject({ ran: { attempt: 1, runner: fleet.processes[1]?.node.incarnation } });
    expect(replayOf(fleet, key)).toEqual({ end: { kind: "complete" }, differences: [] });
  });

  test("dedupeKey: its attempt is marked before it starts, and the next one runs under the same key", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "keyed");
    expect(fleet.record(key)?.snapshot.children["keyed"]).toMatchObject({ attempt: 1, runner: first.node.incarnation });
    first.kill();
    const second = await fleet.alone("n2");
    await fleet.until("it runs again", () => fleet.desk.of("keyed", "n2").length === 1);
    const [one, two] = fleet.desk.of("keyed");
    expect([two?.context.key, two?.context.attempt]).toEqual([one?.context.key, 2]);
    expect(fleet.record(key)?.snapshot.children["keyed"]).toMatchObject({
      attempt: 2,
      runner: second.node.incarnation,
    });
  });

  test("F21: unsafe with a mark: never runs again, its actor gets HF-3010", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "risky");
    first.kill();
    await fleet.alone("n2");
    await fleet.until("the actor was told", () => isOver(fleet, key));
    expect(fleet.context(key)).toMatchObject({ results: [], errors: [{ code: "HF-3010", facts: { attempt: 1 } }] });
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("risky")).toHaveLength(1);
    expect(reportOf(fleet.processes[1] ?? first, key)).toBeUndefined();
  });

  test("F21: unsafe without a mark: it had not started, so it runs", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const decided = first.stopAt("after-commit", key);
    await fleet.send(key, { type: "RUN", src: "risky" });
    await fleet.happened("the job is decided", decided.reached);
    first.kill();
    await fleet.alone("n2");
    await fleet.until("it runs", () => fleet.desk.of("risky", "n2").length === 1);
    fleet.desk.of("risky")[0]?.finish(1);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: [1], errors: [] });
  });

  test("F21: unsafe: the mark of a stopped owner loses against the successor's, and its attempt never starts", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const mark = first.stopAt("before-commit", key, 1);
    await fleet.send(key, { type: "RUN", src: "risky" });
    await fleet.happened("the mark is about to leave", mark.reached);
    await fleet.alone("n2");
    await fleet.until("the successor runs it", () => fleet.desk.of("risky", "n2").length === 1);
    first.resume();
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("risky").map(({ context }) => context.node)).toEqual(["n2"]);
    fleet.desk.of("risky")[0]?.finish(1);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: [1], errors: [] });
  });

  test("F20: an outcome that was published is not asked for again, marked unsafe or not", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "risky");
    const commit = fleet.broker.faults.nextCommit({ kind: "hang" }, { node: "n1", about: key });
    fleet.desk.of("risky")[0]?.finish("known");
    await fleet.happened("the outcome is stored, not applied", commit.happened);
    first.kill();
    await fleet.alone("n2");
    await fleet.until("it is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: ["known"], errors: [] });
    expect(fleet.desk.of("risky")).toHaveLength(1);
  });
});

describe("a job whose node lost its lease", () => {
  test("F20: its outcome is applied once, although another attempt has one too", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "free");
    const late = fleet.broker.faults.nextPublish({ kind: "lateWrite", hold: true }, { node: "n1", about: key });
    fleet.desk.of("free", "n1")[0]?.finish("first");
    await fleet.happened("its outcome is on its way", late.happened);
    first.kill();
    await fleet.alone("n2");
    await fleet.until("it runs again", () => fleet.desk.of("free", "n2").length === 1);
    fleet.broker.forgetMessageIds();
    late.release();
    await fleet.until("the late outcome is applied", () => isOver(fleet, key));
    fleet.desk.of("free", "n2")[0]?.finish("second");
    await fleet.clock.advance(5000);
    expect(fleet.context(key)).toEqual({ results: ["first"], errors: [] });
    expect(fleet.record(key)?.rev).toBe(3);
  });

  test("F20, I10: one that comes when another attempt's was applied is dropped and counted, and the actor still works", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "free");
    const late = fleet.broker.faults.nextPublish({ kind: "lateWrite", hold: true }, { node: "n1", about: key });
    fleet.desk.of("free", "n1")[0]?.finish("late");
    await fleet.happened("its outcome is on its way", late.happened);
    first.kill();
    const second = await fleet.alone("n2");
    const dropped = (): number =>
      [...second.node.partitions.values()].reduce((sum, { counters }) => sum + counters.dropped, 0);
    await fleet.until("it runs again", () => fleet.desk.of("free", "n2").length === 1);
    fleet.desk.of("free", "n2")[0]?.finish("known");
    await fleet.until("its outcome is applied", () => isOver(fleet, key));
    const before = dropped();
    fleet.broker.forgetMessageIds(); // the broker's memory of ids is no help
    late.release();
    await fleet.until("the late one was read", () => dropped() === before + 1);
    expect(fleet.context(key)).toEqual({ results: ["known"], errors: [] });
    expect(fleet.record(key)?.rev).toBe(3);
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("it takes more work", () => fleet.desk.of("free", "n2").length === 2);
  });

  test("I10: how many came too late outlives the owners that counted them: the lease says it", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 500 } });
    const { key, first } = await running(fleet, "free");
    const late = fleet.broker.faults.nextPublish({ kind: "lateWrite", hold: true }, { node: "n1", about: key });
    fleet.desk.of("free", "n1")[0]?.finish("late");
    await fleet.happened("its outcome is on its way", late.happened);
    first.kill();
    const second = await fleet.alone("n2");
    await fleet.until("it runs again", () => fleet.desk.of("free", "n2").length === 1);
    fleet.desk.of("free", "n2")[0]?.finish("known");
    await fleet.until("its outcome is applied", () => isOver(fleet, key));
    fleet.broker.forgetMessageIds();
    late.release();
    const { partition } = parseActorKey(key);
    await fleet.until("the lease counts it", () => fleet.lease(partition)?.late === 1);
    second.kill();
    await fleet.alone("n3");
    const again = fleet.broker.messagesOf("inbox", key).at(-1)?.bytes ?? new Uint8Array();
    await fleet.outsider.log.publish("inbox", key, again, "again");
    await fleet.until("its successor counts on", () => fleet.lease(partition)?.late === 2);
    expect(fleet.lease(partition)?.holder).toContain("n3:");
  });

  test("F18, F20: without contact for longer than the TTL and nobody else there, it goes on and its outcome counts", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "risky");
    first.disconnect();
    await fleet.clock.advance(10_000);
    expect(fleet.desk.of("risky")[0]?.context.signal.aborted).toBe(false);
    fleet.desk.of("risky")[0]?.finish("done");
    await fleet.clock.advance(2000);
    first.reconnect();
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: ["done"], errors: [] });
  });

  test("F36: no job starts while the lease is not proven fresh; it starts when it is", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const decided = first.holdAt("after-commit", key);
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.happened("the job is decided", decided.reached);
    fleet.broker.faults.next("fleetPut", { kind: "refuse", times: 15 }, { about: "node.n1" });
    await fleet.clock.advance(4000);
    decided.release();
    await fleet.clock.advance(500);
    expect(fleet.desk.of("free")).toEqual([]);
    await fleet.until("a heartbeat was stored, and it starts", () => fleet.desk.of("free").length === 1);
  });

  test("F36: a jump of the wall clock beyond the TTL counts as expiry until the next heartbeat", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.clock.advance(2000);
    const decided = first.holdAt("after-commit", key);
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.happened("the job is decided", decided.reached);
    first.clock.jumpWall(60_000);
    decided.release();
    await fleet.clock.settle();
    expect(fleet.desk.of("free")).toEqual([]);
    await fleet.until("it starts", () => fleet.desk.of("free").length === 1);
  });

  test("F40: a node that regains the partition adopts the job that still runs there", async () => {
    const fleet = new MemoryFleet({ settings: { movesAtOnce: 2 } });
    const { key, first } = await running(fleet, "free");
    const others: MemoryProcess[] = [];
    for (let n = 2; fleet.lease(key.slice(0, 3))?.holder === first.node.incarnation; n += 1) {
      others.push(await fleet.start(`n${n}`));
      await fleet.clock.advance(4000);
    }
    expect(fleet.desk.of("free")).toHaveLength(1);
    for (const other of others) other.kill();
    await fleet.serving(first);
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free")).toHaveLength(1);
    fleet.desk.of("free")[0]?.finish(1);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: [1], errors: [] });
  });
});

describe("a planned leave", () => {
  test("F22: ownership moves at once, the running job stays, nobody runs it again, its outcome is applied once", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "risky");
    const second = await fleet.start("n2");
    const startedAtMs = fleet.clock.monotonicMs();
    void first.node.drain();
    await fleet.serving(second);
    expect(fleet.clock.monotonicMs() - startedAtMs).toBeLessThan(1000);
    await fleet.clock.advance(20_000);
    expect(fleet.desk.of("risky").map(({ context }) => [context.node, context.signal.aborted])).toEqual([
      ["n1", false],
    ]);
    expect(reportOf(second, key)).toMatchObject({ kind: "custody" });
    fleet.desk.of("risky")[0]?.finish("paid");
    await fleet.until("the outcome is applied, by the new owner", () => isOver(fleet, key));
    await fleet.until("the node has left", () => fleet.events("node.left", "n1").length === 1);
    await fleet.clock.advance(5000);
    expect(fleet.context(key)).toEqual({ results: ["paid"], errors: [] });
    expect(fleet.record(key)?.rev).toBe(3);
    expect(fleet.header(key)?.writer).toBe(second.node.incarnation);
    expect(fleet.desk.of("risky")).toHaveLength(1);
    expect(reportOf(second, key)).toBeUndefined();
  });

  test("F22: an attempt that was marked when the leave began runs here; nobody has to ask whether it did", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const beginning = first.holdAt("before-job");
    await fleet.send(key, { type: "RUN", src: "risky" });
    await fleet.happened("its mark is stored, and it has not started", beginning.reached);
    expect(fleet.record(key)?.snapshot.children["risky"]).toMatchObject({ attempt: 1 });
    const second = await fleet.start("n2");
    void first.node.drain();
    await fleet.clock.advance(200);
    beginning.release();
    await fleet.serving(second);
    await fleet.until("it runs", () => fleet.desk.of("risky").length === 1);
    fleet.desk.of("risky", "n1")[0]?.finish("paid");
    await fleet.until("the node has left", () => fleet.events("node.left", "n1").length === 1);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    await fleet.clock.advance(10_000);
    expect(fleet.context(key)).toEqual({ results: ["paid"], errors: [] });
    expect(fleet.desk.of("risky")).toHaveLength(1);
  });

  test("F22: a move of a partition, too, leaves its running jobs where they are", async () => {
    const fleet = new MemoryFleet({ settings: { movesAtOnce: 2 } });
    const { key, first } = await running(fleet, "risky");
    for (let n = 2; fleet.lease(key.slice(0, 3))?.holder === first.node.incarnation; n += 1) {
      await fleet.start(`n${n}`);
      await fleet.clock.advance(4000);
    }
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("risky").map(({ context }) => [context.node, context.signal.aborted])).toEqual([
      ["n1", false],
    ]);
    expect(fleet.context(key)).toEqual({ results: [], errors: [] });
    fleet.desk.of("risky")[0]?.finish("paid");
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: ["paid"], errors: [] });
  });

  test("F22: when the runner dies in custody, the new owner decides by the crash policy", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "free");
    const second = await fleet.start("n2");
    void first.node.drain();
    await fleet.serving(second);
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free")).toHaveLength(1);
    first.kill();
    await fleet.until("it runs again", () => fleet.desk.of("free", "n2").length === 1);
    fleet.desk.of("free", "n2")[0]?.finish(2);
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: [2], errors: [] });
  });

  test("F22: an outcome that is stored before custody ends is waited for, not asked for again", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet, "risky");
    const second = await fleet.start("n2");
    void first.node.drain();
    await fleet.serving(second);
    await fleet.until("the new owner knows of the custody", () => reportOf(second, key)?.kind === "custody");
    second.log.lag();
    await fleet.clock.advance(1500); // it looks again, and has to wait for its mailbox
    fleet.desk.of("risky")[0]?.finish("paid");
    await fleet.until("the old owner has left", () => fleet.events("node.left", "n1").length === 1);
    await second.log.goOn();
    await fleet.until("the outcome is applied", () => isOver(fleet, key));
    expect(fleet.context(key)).toEqual({ results: ["paid"], errors: [] });
  });

  test("jobs that outlast the grace time are given up, and decided by the crash policy", async () => {
    const fleet = new MemoryFleet({ settings: { drainGraceMs: 10_000 } });
    const { first } = await running(fleet, "free");
    await fleet.start("n2");
    void first.node.drain();
    await fleet.clock.advance(9000);
    expect(fleet.desk.of("free")).toHaveLength(1);
    await fleet.until("it runs on the other node", () => fleet.desk.of("free", "n2").length === 1);
    expect(fleet.desk.of("free", "n1")[0]?.context.signal.aborted).toBe(true);
  });

  test("a partition that is being taken while the node leaves is given away too", async () => {
    const fleet = new MemoryFleet();
    const first = fleet.make("n1");
    const claim = first.holdAt("after-barrier");
    void first.node.start();
    await fleet.happened("a partition is being taken", claim.reached);
    const second = await fleet.start("n2");
    let hasLeft = false;
    void first.node.drain().then(() => (hasLeft = true));
    await fleet.clock.advance(500);
    claim.release();
    await fleet.until("it has left", () => hasLeft);
    await fleet.serving(second);
    expect(first.node.partitions.size).toBe(0);
  });

  test("what a node gives up when it stops at once is not taken back by it", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    let hasLeft = false;
    void first.node.stop().then(() => (hasLeft = true));
    await fleet.until("it has left", () => hasLeft);
    await fleet.clock.advance(1000);
    expect(first.node.partitions.size).toBe(0);
    expect(fleet.lease("d-0")).toMatchObject({ state: "released", epoch: 1 });
  });
});
