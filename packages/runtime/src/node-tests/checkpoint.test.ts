import { Checkpoint } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

const SWEPT = { sweepMs: 1000, idleCleanMs: 100, cursorFlushMs: 200 };

/** Checkpoint of a partition as it is stored now. */
async function stored(fleet: MemoryFleet, partition: string) {
  const reading = fleet.outsider.records.loadCheckpoint(partition);
  await fleet.happened("the checkpoint was read", reading);
  const value = await reading;
  if (value === undefined) return undefined;
  return { seq: value.seq, checkpoint: Checkpoint.parse(JSON.parse(new TextDecoder().decode(value.bytes))) };
}

/** Puts something else in the place of a checkpoint. */
async function replace(fleet: MemoryFleet, partition: string, change: (found: Checkpoint) => string): Promise<void> {
  const found = await stored(fleet, partition);
  if (found === undefined) throw new Error(`${partition} has no checkpoint`);
  const bytes = new TextEncoder().encode(change(found.checkpoint));
  const storing = fleet.outsider.records.storeCheckpoint(partition, bytes, found.seq, "outsider");
  await fleet.happened("the checkpoint was replaced", storing);
  expect(await storing).toMatchObject({ kind: "committed" });
}

/** An owner with a job that runs, whose message is behind the stored cursor, and which the stored checkpoint names. */
async function atWork(fleet: MemoryFleet): Promise<{ first: MemoryProcess; key: string; partition: string }> {
  const first = await fleet.alone("n1");
  const key = await fleet.born("errand", "e");
  const partition = key.slice(0, key.indexOf("."));
  await fleet.send(key, { type: "RUN", src: "free" });
  await fleet.until("its job runs", () => fleet.desk.of("free", "n1").length === 1);
  const seq = fleet.broker.messagesOf("inbox", key).at(-1)?.seq ?? 0;
  await fleet.until("the stored cursor is past its message", () => (fleet.lease(partition)?.cursor ?? 0) > seq);
  await fleet.clock.advance(2500);
  const found = await stored(fleet, partition);
  expect(found?.checkpoint).toMatchObject({ epoch: 1, unlisted: 0, live: [[key, expect.any(Number)]] });
  expect(found?.checkpoint.seq).toBeGreaterThan(fleet.broker.writesOf(key).at(-1)?.seq ?? Infinity);
  return { first, key, partition };
}

/** Barriers of sweeps carry the checkpoint of a partition on. */
async function checkpointedBeyond(fleet: MemoryFleet, partition: string, seq: number): Promise<void> {
  for (let n = 0; n < 100 && ((await stored(fleet, partition))?.checkpoint.seq ?? 0) <= seq; n += 1) {
    await fleet.clock.advance(1000);
  }
}

const scannedFrom = (fleet: MemoryFleet, node: string, partition: string): unknown =>
  fleet.events("partition.taken", node).find(({ fields }) => fields["partition"] === partition)?.fields["fromSeq"];

const runsAgain = (fleet: MemoryFleet): Promise<void> =>
  fleet.until("the successor runs the job", () => fleet.desk.of("free", "n2").length === 1);

describe("the checkpoint of a partition", () => {
  test("F8: a successor looks only at what came after it, and takes up what it names", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const { first, key, partition } = await atWork(fleet);
    const before = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
    await checkpointedBeyond(fleet, partition, before + 40); // further away than a scan would read on for one record
    const checkpointed = (await stored(fleet, partition))?.checkpoint.seq ?? 0;
    first.kill();
    const second = await fleet.alone("n2");
    await runsAgain(fleet);
    expect(scannedFrom(fleet, "n2", partition)).toBe(checkpointed + 1);
    await fleet.clock.advance(3000);
    expect(fleet.desk.of("free", second.name).length).toBe(1);
  });

  test("the scan begins before it where that saves reading records one by one", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const { first, key, partition } = await atWork(fleet);
    const seq = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
    first.kill();
    await fleet.alone("n2");
    await runsAgain(fleet);
    expect(scannedFrom(fleet, "n2", partition)).toBe(seq);
  });

  test("F8: work that came after it is found by the scan", async () => {
    const fleet = new MemoryFleet({ settings: { ...SWEPT, sweepMs: 600_000 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const partition = key.slice(0, key.indexOf("."));
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("its job runs", () => fleet.desk.of("free", "n1").length === 1);
    await fleet.clock.advance(1000);
    expect((await stored(fleet, partition))?.checkpoint.live).toEqual([]);
    first.kill();
    await fleet.alone("n2");
    await runsAgain(fleet);
    expect(scannedFrom(fleet, "n2", partition)).toBeGreaterThan(0);
  });

  test("F8, x06: so is what a commit stored whose acknowledgement never came", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const partition = key.slice(0, key.indexOf("."));
    await fleet.clock.advance(2500);
    const late = fleet.broker.faults.nextCommit({ kind: "lostAck", hold: true }, { node: "n1", about: key });
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.happened("it is stored, unknown to its owner", late.happened);
    const storedSeq = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
    await fleet.clock.advance(5000);
    const found = await stored(fleet, partition);
    expect(found?.checkpoint.live.map(([live]) => live)).toEqual([key]);
    expect(found?.checkpoint.seq).toBeLessThan(storedSeq); // although several barriers were written since
    expect(found?.seq).toBeGreaterThan(storedSeq);
    first.kill();
    await fleet.alone("n2");
    await runsAgain(fleet);
  });

  const useless: readonly (readonly [string, (found: Checkpoint) => string])[] = [
    ["that cannot be read", () => "{"],
    ["of another epoch", (found) => JSON.stringify({ ...found, epoch: 7, live: [] })],
    ["of another generation", (found) => JSON.stringify({ ...found, generation: "g9", live: [] })],
    ["of another partition", (found) => JSON.stringify({ ...found, partition: "d-99", live: [] })],
    ["from beyond the end of the stream", (found) => JSON.stringify({ ...found, seq: 1_000_000, live: [] })],
  ];
  for (const [what, change] of useless) {
    test(`F8: with one ${what} everything is read`, async () => {
      const fleet = new MemoryFleet({ settings: SWEPT });
      const { first, partition } = await atWork(fleet);
      first.kill();
      await replace(fleet, partition, change);
      await fleet.alone("n2");
      await runsAgain(fleet);
      expect(scannedFrom(fleet, "n2", partition)).toBe(0);
    });
  }

  test("work that it hides is found by the daily scan from the start", async () => {
    const fleet = new MemoryFleet({ settings: { ...SWEPT, fullScanMs: 60_000 } });
    const { first, partition } = await atWork(fleet);
    first.kill();
    await replace(fleet, partition, (found) => JSON.stringify({ ...found, live: [] })); // a lie
    await fleet.alone("n2");
    await fleet.clock.advance(40_000);
    expect(fleet.desk.of("free", "n2").length).toBe(0);
    await runsAgain(fleet);
  });

  test("a planned leave stores one, which counts", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 600_000, drainGraceMs: 100 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d");
    const partition = key.slice(0, key.indexOf("."));
    const before = await stored(fleet, partition);
    await fleet.happened("it has left", first.node.drain());
    const after = await stored(fleet, partition);
    expect(after?.seq).toBeGreaterThan(before?.seq ?? Infinity);
    await fleet.alone("n2");
    expect(scannedFrom(fleet, "n2", partition)).toBe((after?.checkpoint.seq ?? 0) + 1);
  });

  test("a former owner's late one does not replace that of its successor", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const { first, key, partition } = await atWork(fleet);
    const late = fleet.broker.faults.next(
      "checkpoint",
      { kind: "lateWrite", hold: true },
      { node: "n1", about: partition },
    );
    await fleet.send(key, { type: "GIVE_UP" }); // something to write about
    await fleet.happened("its next one is on the way", late.happened);
    first.kill();
    await fleet.alone("n2");
    expect((await stored(fleet, partition))?.checkpoint.epoch).toBe(2);
    late.release();
    await fleet.clock.advance(1000);
    expect((await stored(fleet, partition))?.checkpoint.epoch).toBe(2);
  });

  test("a former owner that finds that of its successor ends its part of the partition", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const { first, partition } = await atWork(fleet);
    await replace(fleet, partition, (found) => JSON.stringify({ ...found, epoch: 2, live: [] }));
    await fleet.until("it was fenced", () => fleet.events("partition.fenced", first.name).length > 0);
    expect(fleet.events("partition.fenced", first.name)[0]?.fields).toMatchObject({ partition, epoch: 1, seen: 2 });
  });
});

describe("the scan of a takeover", () => {
  test("is one for all partitions of a shard that are taken together, and spares their actors a read each", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const ids = Array.from({ length: 12 }, (_, n) => `e${n}`);
    for (const id of ids) await fleet.send(await fleet.born("errand", id), { type: "RUN", src: "free" });
    await fleet.until("their jobs run", () => fleet.desk.of("free", "n1").length === ids.length);
    first.kill();
    const second = fleet.make("n2");
    const scanned: string[][] = [];
    const loaded: string[] = [];
    const { records } = second.ports;
    const scan = records.scan.bind(records);
    const load = records.load.bind(records);
    records.scan = (request) => {
      scanned.push(request.parts.map(({ partition }) => partition));
      return scan(request);
    };
    records.load = (key) => {
      loaded.push(key);
      return load(key);
    };
    await fleet.happened("n2 has joined", second.node.start());
    await fleet.until("they run again", () => fleet.desk.of("free", "n2").length === ids.length);
    expect(scanned.map((parts) => parts.toSorted())).toEqual([
      ["d-0", "d-2"],
      ["d-1", "d-3"],
    ]);
    expect(loaded).toEqual([]);
  });

  test("its values serve one load only: whoever wrote since reads what is stored", async () => {
    const fleet = new MemoryFleet({ settings: SWEPT });
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("its job runs", () => fleet.desk.of("free", "n1").length === 1);
    first.kill();
    const second = await fleet.start("n2");
    const restoring = second.holdAt("mid-rehydration", key);
    await fleet.happened("its value was read, and it is about to be restored", restoring.reached);
    const message = await fleet.send(key, { type: "GIVE_UP" });
    await fleet.until("a message loads it and is applied", () => fleet.outcomes(message).length === 1);
    restoring.release();
    await fleet.serving(second);
    const refused = fleet.broker.faults.nextCommit({ kind: "refuse", giveUp: true }, { node: "n2", about: key });
    const next = await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.happened("its copy is dropped", refused.happened);
    await fleet.until("the next one is applied all the same", () => fleet.outcomes(next).length === 1);
    const outcomes = fleet.events("commit.not-stored", "n2").map(({ fields }) => fields["outcome"]);
    expect(outcomes).toEqual(["unknown"]); // and not a stale one, made from what the scan had read
    expect(fleet.record(key)?.rev).toBe(4);
  });
});
