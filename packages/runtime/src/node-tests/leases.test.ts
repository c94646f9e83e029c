import { shardOf } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { StuckBoard } from "./stuck-board.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

const PARTITIONS = ["d-0", "d-1", "d-2", "d-3"];
const holders = (fleet: MemoryFleet): readonly unknown[] =>
  PARTITIONS.map((partition) => fleet.lease(partition)?.holder);
const epochs = (fleet: MemoryFleet): readonly unknown[] => PARTITIONS.map((partition) => fleet.lease(partition)?.epoch);
const shardMates = (fleet: MemoryFleet, partition: string): readonly string[] =>
  PARTITIONS.filter((each) => shardOf(fleet.broker.scheme, each) === shardOf(fleet.broker.scheme, partition));
const owned = ({ node }: MemoryProcess): number => node.partitions.size;

describe("who owns a partition", () => {
  test("F14: a second live incarnation of a name refuses to start", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const second = fleet.make("n1");
    const refused = second.node.start().catch((error: unknown) => error);
    await fleet.happened("it has refused", refused);
    expect(await refused).toMatchObject({ code: "HF-3004" });
    await fleet.clock.advance(10_000);
    expect(holders(fleet)).toEqual(PARTITIONS.map(() => first.node.incarnation));
  });

  test("F14: a lease of a dead incarnation of the same name is foreign: it is claimed, with a greater epoch", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "risky" });
    await fleet.until("the job runs", () => fleet.desk.of("risky").length === 1);
    first.kill();
    const second = await fleet.alone("n1");
    expect(holders(fleet)).toEqual(PARTITIONS.map(() => second.node.incarnation));
    expect(epochs(fleet)).toEqual([2, 2, 2, 2]);
    await fleet.until("its job is known to be somebody else's", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toMatchObject({ errors: [{ code: "HF-3010" }] });
  });

  test.each([
    ["drain", "fails"],
    ["drain", "hangs"],
    ["stop", "fails"],
    ["stop", "hangs"],
  ] as const)(
    "N4: a leave that nobody answers ends about when the leases do (%s, its release %s); the next one has everything, the job as well",
    async (leave, how) => {
      const fleet = new MemoryFleet();
      const first = await fleet.alone("n1");
      const key = await fleet.born("errand", "e");
      await fleet.send(key, { type: "RUN", src: "free" });
      await fleet.until("the job runs", () => fleet.desk.of("free").length === 1);
      if (how === "hangs")
        for (const partition of PARTITIONS)
          fleet.broker.faults.next("fleetCas", { kind: "hang" }, { node: "n1", about: `lease.${partition}` });
      let hasLeft = false;
      const leaving = first.node[leave]().then(() => (hasLeft = true));
      first.disconnect();
      const { leaseTtlMs, heartbeatMs } = first.node.settings;
      await fleet.clock.advance(2 * leaseTtlMs + 6 * heartbeatMs);
      expect(hasLeft).toBe(true);
      await leaving;
      expect(fleet.events("node.unreleased", "n1").length).toBeGreaterThan(0);
      first.kill();
      const second = await fleet.alone("n2");
      expect(holders(fleet)).toEqual(PARTITIONS.map(() => second.node.incarnation));
      await fleet.until("the job runs again", () => fleet.desk.of("free").length === 2);
    },
  );

  test("F14: a node that was replaced under its name while it was stopped ends when it goes on, and disturbs nobody", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    first.stop();
    await fleet.clock.advance(5000);
    const second = await fleet.alone("n1");
    first.resume();
    await fleet.clock.advance(20_000);
    expect(owned(first)).toBe(0);
    expect(holders(fleet)).toEqual(PARTITIONS.map(() => second.node.incarnation));
    expect(epochs(fleet)).toEqual([2, 2, 2, 2]);
    expect(second.node.view.nodes.get("n1")?.heartbeat).toMatchObject({
      incarnation: second.node.incarnation,
      state: "serving",
    });
  });

  test("F33: a node that joins asks for its share; what it gets was released to it, never taken", async () => {
    const fleet = new MemoryFleet({ settings: { movesAtOnce: 2 } });
    const first = await fleet.alone("n1");
    const second = await fleet.start("n2");
    await fleet.clock.advance(20_000);
    expect(owned(first) + owned(second)).toBe(PARTITIONS.length);
    expect(owned(second)).toBeGreaterThan(0);
    expect(fleet.events("partition.fenced")).toEqual([]);
    expect(fleet.events("partition.released", "n1")).toHaveLength(owned(second));
  });

  test("F33: of nodes that start together, each partition has one owner", async () => {
    const fleet = new MemoryFleet({ settings: { movesAtOnce: 2 } });
    const processes = ["n1", "n2", "n3"].map((name) => fleet.make(name));
    for (const { node } of processes) void node.start();
    await fleet.until("everything is owned", () => processes.reduce((sum, process) => sum + owned(process), 0) === 4);
    await fleet.clock.advance(20_000);
    const names = processes.flatMap(({ node }) => [...node.partitions.keys()]);
    expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual(PARTITIONS);
    expect(fleet.events("partition.fenced")).toEqual([]);
  });

  test("F33: what the one whose turn it is does not claim is claimed by another after a while", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const second = await fleet.start("n2");
    const third = await fleet.start("n3");
    fleet.broker.faults.next("fleetCas", { kind: "refuse", times: 10_000 }, { node: "n2" });
    first.kill();
    await fleet.until("the third has all of them", () => owned(third) === PARTITIONS.length);
    expect(owned(second)).toBe(0);
  });

  test("F18: an outage of the broker longer than the lease aborts no job and moves nothing", async () => {
    const fleet = new MemoryFleet({ settings: { movesAtOnce: 2 } });
    const [first, second] = [await fleet.alone("n1"), await fleet.start("n2")];
    await fleet.clock.advance(20_000);
    const keys: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      keys.push(await fleet.born("errand", `e${n}`));
      await fleet.send(keys.at(-1) ?? "", { type: "RUN", src: "free" });
    }
    await fleet.until("jobs run", () => fleet.desk.of("free").length === 6);
    const before = [holders(fleet), epochs(fleet)];
    for (const process of [first, second]) process.disconnect();
    await fleet.clock.advance(30_000);
    for (const process of [first, second]) process.reconnect();
    await fleet.clock.advance(20_000);
    expect([holders(fleet), epochs(fleet)]).toEqual(before);
    expect(fleet.desk.of("free")).toHaveLength(6);
    expect(fleet.desk.of("free").filter(({ context }) => context.signal.aborted)).toEqual([]);
    for (const job of fleet.desk.of("free")) job.finish(1);
    await fleet.until("all outcomes are applied", () =>
      keys.every((key) => fleet.record(key)?.snapshot.value === "waiting"),
    );
  });

  test("F18: a heartbeat that gets no answer does not hold up the next one", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const second = await fleet.start("n2");
    fleet.broker.faults.next("fleetPut", { kind: "hang" }, { about: "node.n1" });
    await fleet.clock.advance(20_000);
    expect(holders(fleet)).toEqual(PARTITIONS.map(() => first.node.incarnation));
    expect(owned(second)).toBe(0);
  });

  test("F18: while a node cannot see the fleet, it takes nobody for dead, although its own heartbeats are stored", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const second = await fleet.start("n2");
    second.registry.lag();
    await fleet.clock.advance(20_000);
    second.registry.goOn();
    await fleet.clock.advance(5000);
    expect(holders(fleet)).toEqual(PARTITIONS.map(() => first.node.incarnation));
    expect(epochs(fleet)).toEqual([1, 1, 1, 1]);
  });

  test("F42: a lease write whose answer was lost does not cost the lease, nor the writes after it", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 500 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("resting", "a");
    const partition = key.slice(0, 3);
    fleet.broker.faults.next("fleetCas", { kind: "lostAck", giveUp: true }, { about: `lease.${partition}` });
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.clock.advance(2000);
    await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("the cursor goes on", () => (fleet.lease(partition)?.cursor ?? 0) > 3);
    expect(fleet.lease(partition)).toMatchObject({ holder: first.node.incarnation, epoch: 1, state: "held" });
    expect(owned(first)).toBe(PARTITIONS.length);
  });

  test("F42: a claim that was stored but never acknowledged does not leave the partition without an owner", async () => {
    const fleet = new MemoryFleet();
    fleet.broker.faults.next("fleetCas", { kind: "lostAck", giveUp: true }, { about: "lease.d-1" });
    const first = await fleet.alone("n1");
    expect(fleet.lease("d-1")?.holder).toBe(first.node.incarnation);
  });

  test("a takeover that breaks off half-way is made again", async () => {
    const fleet = new MemoryFleet();
    const first = fleet.make("n1");
    first.log.failReads(2); // of the parked messages
    void first.node.start();
    await fleet.serving(first);
    expect(fleet.events("partition.take-failed", "n1")).toHaveLength(2);
    expect(epochs(fleet).filter((epoch) => epoch === 2)).toHaveLength(2);
    const key = await fleet.born("tally", "a");
    expect(fleet.header(key)?.writer).toBe(first.node.incarnation);
  });

  test("I12: a node that is fenced in the middle of a takeover still takes over what it must afterwards", async () => {
    const fleet = new MemoryFleet();
    const before = await fleet.alone("n0");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "keyed" });
    await fleet.until("the job runs", () => fleet.desk.of("keyed").length === 1);
    before.kill();
    const first = await fleet.start("n1");
    const taking = first.stopAt("mid-rehydration", key);
    await fleet.happened("it is taking over", taking.reached);
    for (let n = 0; n < 40; n += 1) await fleet.outsider.fleet.put(`noise.${n}`, new Uint8Array(1));
    const second = await fleet.alone("n2");
    await fleet.until(
      "the successor has written the record",
      () => fleet.header(key)?.writer === second.node.incarnation,
    );
    first.resume(); // it finds the record before it has seen the lease
    await fleet.until("it has noticed", () => owned(first) === 0);
    second.kill();
    await fleet.serving(first);
    await fleet.until("it runs the job", () => fleet.desk.of("keyed", "n1").length === 1);
  });
});

describe("an inbox that has lost its end", () => {
  test("F11, x09: is not served under its old generation; under a new one nothing accepted since is lost", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 200, idleCleanMs: 100 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    for (let n = 1; n <= 5; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 6);
    await fleet.clock.advance(1000);
    first.kill();
    const partition = key.slice(0, 3);
    fleet.broker.loseInboxTail(partition, 3);
    const message = await fleet.send(key, { type: "ADD", n: "accepted since" });
    const second = await fleet.start("n2");
    await fleet.until("it says so", () => fleet.events("broker.lost-data", "n2").length > 0);
    await fleet.clock.advance(10_000);
    // Whoever served another partition of the shard would write into the inbox, and hide what it has lost.
    const sameShard = shardMates(fleet, partition);
    expect([...second.node.partitions.keys()].filter((each) => sameShard.includes(each))).toEqual([]);
    expect(fleet.outcomes(message)).toEqual([]);
    second.kill();
    fleet.broker.setGeneration("g2");
    const third = await fleet.alone("n3");
    await fleet.until("what was accepted since is applied", () => fleet.outcomes(message).length > 0);
    expect(fleet.context(key)).toEqual({ seen: [1, 2, 3, 4, 5, "accepted since"] });
    expect(third.node.partitions.size).toBe(PARTITIONS.length);
  });

  test("F11: a copy that was restored: what it still holds was considered, or not, as before; what comes after it is new", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 200, idleCleanMs: 100 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    const partition = key.slice(0, 3);
    // More than a record remembers by their ids.
    for (let n = 1; n <= 80; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 81);
    await fleet.clock.advance(1000);
    first.kill();
    fleet.broker.loseInboxTail(partition, 75);
    fleet.broker.setGeneration("g2", [{ generation: "g1", upTo: 75 }]);
    const message = await fleet.send(key, { type: "ADD", n: "new" });
    await fleet.alone("n2");
    await fleet.until("what is new is applied", () => fleet.outcomes(message).length > 0);
    await fleet.clock.advance(2000);
    expect(fleet.context(key)).toEqual({ seen: [...Array.from({ length: 80 }, (_, n) => n + 1), "new"] });
  });
});

describe("a bucket of records that was restored from an older copy", () => {
  /** A tally that has counted, and its node gone with everything told. */
  async function counted() {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 200, idleCleanMs: 100 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    await fleet.clock.advance(1000);
    const copied = (await fleet.outsider.records.load(key))?.seq ?? 0;
    for (let n = 1; n <= 5; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 6);
    await fleet.clock.advance(1000);
    return { fleet, first, key, partition: key.slice(0, 3), copied };
  }

  test("F11: is told of and listed, and nobody serves its shard; under a new generation its actors go on as the copy has them", async () => {
    const { fleet, first, key, partition, copied } = await counted();
    first.kill();
    fleet.broker.restoreRecords(partition, copied);
    const board = await StuckBoard.open(fleet);
    const second = await fleet.start("n2");
    await fleet.until("it says so", () => fleet.events("broker.lost-data", "n2").length > 0);
    await fleet.clock.advance(10_000);
    const sameShard = shardMates(fleet, partition);
    expect([...second.node.partitions.keys()].filter((each) => sameShard.includes(each))).toEqual([]);
    expect(second.node.partitions.size).toBe(PARTITIONS.length - sameShard.length);
    expect(fleet.events("broker.lost-data", "n2")).toMatchObject(
      sameShard.map((each) => ({ fields: { partition: each, of: "records", has: copied, code: "HF-4006" } })),
    );
    expect(board.row("n2", partition, "lost-data")).toMatchObject({ why: expect.stringContaining("HF-4006") });
    second.kill();
    fleet.broker.setGeneration("g2", [{ generation: "g1", upTo: 1000 }]); // the inboxes are as they were
    await fleet.alone("n3");
    const message = await fleet.send(key, { type: "ADD", n: "new" });
    await fleet.until("it is applied", () => fleet.outcomes(message).length > 0);
    expect(fleet.context(key)).toEqual({ seen: ["new"] });
  });

  test("F11: also after a planned leave, and when the owner before the last one stored nothing", async () => {
    const { fleet, first, partition, copied } = await counted();
    void first.node.drain();
    const second = await fleet.alone("n2");
    await fleet.happened("it has left", second.node.drain());
    fleet.broker.restoreRecords(partition, copied);
    await fleet.start("n3");
    await fleet.until("it says so", () => fleet.events("broker.lost-data", "n3").length > 0);
  });

  test("a bucket that ends where it ended is served, whatever its neighbours store meanwhile", async () => {
    const { fleet, first, key } = await counted();
    first.kill();
    const second = await fleet.alone("n2");
    for (let n = 6; n <= 20; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 21);
    second.kill();
    await fleet.alone("n3");
    expect(fleet.events("broker.lost-data")).toEqual([]);
  });
});
