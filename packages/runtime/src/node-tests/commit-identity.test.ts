import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

describe("a commit is known by its token", () => {
  test.each([1, 2, 3])(
    "F1, x03: what was decided on a stale copy is stored by nobody, and every message is applied once (seed %i)",
    async (seed) => {
      const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
      const first = await fleet.alone("n1");
      const key = await fleet.born("tally", "a");
      for (const n of [0, 1]) await fleet.send(key, { type: "ADD", n });
      await fleet.until("a few revisions are stored", () => fleet.revisions(key).length === 3);
      first.kill();
      const lagging = await fleet.alone("n2", { faults: { seed, staleReadRate: 0.5 } });
      for (let n = 2; n < 14; n += 1) {
        fleet.broker.faults.nextCommit({ kind: "refuse", giveUp: true }, { node: "n2", about: key }); // its copy goes, it reads again
        const id = await fleet.send(key, { type: "ADD", n });
        await fleet.until(`${n} was answered`, () => fleet.outcomes(id).length > 0);
        expect(fleet.outcomes(id)[0]?.kind).toBe("applied");
      }
      expect(fleet.context(key)).toEqual({ seen: Array.from({ length: 14 }, (_, n) => n) });
      const stale = [...lagging.node.partitions.values()].reduce((sum, { counters }) => sum + counters.stale, 0);
      expect(stale, "some decisions were taken on a stale copy").toBeGreaterThan(0);
    },
  );

  test("F1, x03: a late write of a dead owner wins over what was decided on the copy before it, and the sender is told so", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    const late = fleet.broker.faults.nextCommit({ kind: "lateWrite", hold: true }, { about: key });
    const retry = fleet.broker.faults.nextCommit({ kind: "hang" }, { about: key });
    await fleet.happened(
      "the deadline is on its way to the record, and sent again",
      Promise.all([late.happened, retry.happened]),
    );
    first.kill();
    const answer = await fleet.send(key, { type: "ANSWER", text: "yes" });
    const second = await fleet.start("n2");
    const decided = second.holdAt("before-commit", key);
    await fleet.happened("the successor has decided on the old copy", decided.reached);
    late.release();
    await fleet.clock.settle();
    decided.release();
    await fleet.until("the sender was told", () => fleet.outcomes(answer).length > 0);
    expect(fleet.record(key)?.snapshot.value).toBe("expired");
    expect(fleet.outcomes(answer)).toMatchObject([{ kind: "ignored", value: "expired" }]);
    expect(fleet.revisions(key)).toEqual([1, 2]);
  });

  test("I7: a commit that is stored but never acknowledged is found again; its message is applied once, its effects leave", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("boss", "b");
    fleet.broker.faults.nextCommit({ kind: "lostAck", giveUp: true }, { about: key });
    await fleet.send(key, { type: "DELEGATE", id: "h" });
    const child = await fleet.child(key, "h");
    await fleet.until("the child was started", () => fleet.record(child) !== undefined);
    expect(fleet.record(key)?.rev).toBe(2);
    expect(fleet.broker.messagesOf("inbox", child)).toHaveLength(1);
  });
});
