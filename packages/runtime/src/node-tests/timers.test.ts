import { MAX_MAILBOX_MESSAGES } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

const HOUR = 3_600_000;

describe("deadlines", () => {
  test("F23, x15: an answer accepted before the deadline wins, although the takeover comes after it", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    await fleet.clock.advance(3000);
    first.kill();
    const answer = await fleet.send(key, { type: "ANSWER", text: "in time" });
    const second = fleet.make("n2");
    second.log.lag(); // the mailbox is the last thing it gets to see
    void second.node.start();
    await fleet.clock.advance(10_000);
    expect(fleet.record(key)?.snapshot.value).toBe("open");
    await second.log.goOn();
    await fleet.until("it was answered", () => fleet.outcomes(answer).length > 0);
    expect(fleet.record(key)?.snapshot.value).toBe("answered");
    expect(fleet.outcomes(answer)).toMatchObject([{ kind: "applied", value: "answered" }]);
  });

  test("F23: also behind more messages than an actor may have in memory", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    const slow = process.holdAt("before-commit", key);
    for (let n = 0; n < 2 * MAX_MAILBOX_MESSAGES; n += 1) await fleet.send(key, { type: "NOISE" });
    await fleet.send(key, { type: "ANSWER", text: "in time" });
    await fleet.happened("the actor is busy", slow.reached);
    await fleet.clock.advance(6000);
    slow.release();
    await fleet.until("it was decided", () => fleet.record(key)?.snapshot.value !== "open");
    expect(fleet.context(key)).toMatchObject({ answer: "in time", noise: 2 * MAX_MAILBOX_MESSAGES });
    await fleet.clock.advance(1000);
    expect(fleet.record(key)?.snapshot.value).toBe("answered");
  });

  test("behind messages that were cut off, it still fires", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    const slow = process.holdAt("before-commit", key);
    for (let n = 0; n < 2 * MAX_MAILBOX_MESSAGES; n += 1) await fleet.send(key, { type: "NOISE" });
    await fleet.happened("the actor is busy", slow.reached);
    await fleet.clock.advance(6000);
    slow.release();
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired");
    expect(fleet.context(key)).toMatchObject({ noise: 2 * MAX_MAILBOX_MESSAGES });
  });

  test("F23: in normal running, an answer that is stored when the deadline falls due is read first", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    await fleet.clock.advance(4990);
    process.disconnect();
    const answer = await fleet.send(key, { type: "ANSWER", text: "in time" });
    await fleet.clock.advance(20);
    process.reconnect();
    await fleet.until("it was answered", () => fleet.outcomes(answer).length > 0);
    expect(fleet.record(key)?.snapshot.value).toBe("answered");
  });

  test("one that fell due while nobody owned the actor fires once, at the takeover", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    first.kill();
    await fleet.clock.advance(HOUR);
    await fleet.start("n2");
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired");
    expect(fleet.record(key)?.rev).toBe(2);
  });

  test("fires for an actor that has left memory, at its time", async () => {
    const fleet = new MemoryFleet({ settings: { passivateMs: 1000, sweepMs: 500, idleCleanMs: 100 } });
    const { node } = await fleet.alone("n1");
    const startedAtMs = fleet.clock.wallMs();
    const key = await fleet.born("deadline", "d", { waitMs: 20_000 });
    const inMemory = (): boolean => [...node.partitions.values()].some(({ cells }) => cells.has(key));
    await fleet.until("it has left memory", () => !inMemory());
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired");
    expect(fleet.clock.wallMs() - startedAtMs).toBeLessThan(20_300);
    expect(fleet.clock.wallMs() - startedAtMs).toBeGreaterThanOrEqual(20_000);
  });

  test.each([HOUR, -HOUR])(
    "F37: a node whose clock is %i ms ahead arms and fires timers in broker time",
    async (aheadMs) => {
      const fleet = new MemoryFleet();
      const first = await fleet.alone("n1", { aheadMs });
      const startedAtMs = fleet.clock.wallMs();
      const key = await fleet.born("deadline", "d", { waitMs: 30_000 });
      expect(fleet.record(key)?.timers).toMatchObject({
        "xstate.after.deadline.deadline.open": { dueAtMs: startedAtMs + 30_000 },
      });
      const other = await fleet.born("deadline", "e", { waitMs: 10_000 });
      await fleet.until("the short one has expired", () => fleet.record(other)?.snapshot.value === "expired");
      expect(fleet.clock.wallMs() - startedAtMs).toBeLessThan(10_500);
      first.kill();
      await fleet.start("n2");
      await fleet.until(
        "the long one has expired, on a node that is right",
        () => fleet.record(key)?.snapshot.value === "expired",
      );
      expect(fleet.clock.wallMs() - startedAtMs).toBeGreaterThanOrEqual(30_000);
      expect(fleet.clock.wallMs() - startedAtMs).toBeLessThan(31_000);
    },
  );

  test("F37: a node whose clock is ahead does not carry its error into a lease before it knows the time", async () => {
    const fleet = new MemoryFleet();
    const beat = fleet.broker.faults.next("fleetPut", { kind: "lostAck", hold: true }, { about: "node.n1" });
    const process = fleet.make("n1", { aheadMs: HOUR });
    void process.node.start();
    await fleet.happened("its first heartbeat is stored, but not acknowledged", beat.happened);
    await fleet.outsider.fleet.put("noise", new Uint8Array(1)); // something to look at in the bucket
    await fleet.clock.advance(2000);
    beat.release();
    await fleet.serving(process);
    const floors = ["d-0", "d-1", "d-2", "d-3"].map((partition) => fleet.lease(partition)?.floorMs ?? 0);
    expect(Math.max(...floors)).toBeLessThanOrEqual(fleet.clock.wallMs());
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    expect(fleet.record(key)?.createdAtMs).toBeLessThanOrEqual(fleet.clock.wallMs());
  });

  test.each([HOUR, -HOUR])("F37: when somebody sets the clock of a node by %i ms, no timer moves", async (jumpMs) => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const startedAtMs = fleet.clock.wallMs();
    const key = await fleet.born("deadline", "d", { waitMs: 20_000 });
    await fleet.clock.advance(5000);
    await fleet.clock.advance(350); // between two heartbeats
    process.clock.jumpWall(jumpMs);
    const other = await fleet.born("deadline", "e", { waitMs: 5000 });
    await fleet.until("the short one has expired", () => fleet.record(other)?.snapshot.value === "expired");
    expect(fleet.clock.wallMs() - startedAtMs).toBeLessThan(11_000);
    expect(fleet.record(key)?.snapshot.value).toBe("open");
    await fleet.until("the long one has expired", () => fleet.record(key)?.snapshot.value === "expired");
    expect(fleet.clock.wallMs() - startedAtMs).toBeGreaterThanOrEqual(20_000);
    expect(fleet.clock.wallMs() - startedAtMs).toBeLessThan(20_500);
  });

  test("F23: while the mailbox cannot be read it waits, and looks again once per heartbeat", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    await fleet.clock.advance(4500);
    process.log.failReads(3);
    await fleet.clock.advance(3400);
    expect(fleet.record(key)?.snapshot.value).toBe("open");
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired", 1000);
    expect(fleet.record(key)?.rev).toBe(2);
  });

  test("due while the broker is away, it fires when it is back", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    process.disconnect();
    await fleet.clock.advance(10_000);
    expect(fleet.record(key)?.snapshot.value).toBe("open");
    process.reconnect();
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired");
    expect(fleet.record(key)?.rev).toBe(2);
  });
});
