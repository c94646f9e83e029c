import { NodeLoad } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { LoadReporter, type LoadedPartition } from "./load-reporter.ts";
import { MemoryFleet } from "./node-tests/memory-fleet.ts";

function reporterOf(fleet: MemoryFleet, partitions: Map<string, LoadedPartition>) {
  return new LoadReporter({
    node: "n1",
    fleet: fleet.outsider.fleet,
    log: fleet.outsider.log,
    clock: fleet.clock,
    partitions: () => partitions,
    partitionsPerStream: 2,
    busyFrom: 100,
    validMs: 3000,
  });
}
const loaded = (pending: number, committed = 0, isPaused = false): LoadedPartition => ({
  cursor: { pending, highest: 0 },
  isPaused,
  counters: { committed },
});

async function told(fleet: MemoryFleet): Promise<NodeLoad | undefined> {
  const value = await fleet.outsider.fleet.get("busy.n1");
  return value === undefined ? undefined : NodeLoad.parse(JSON.parse(new TextDecoder().decode(value.bytes)));
}

describe("what a node says about its backlog", () => {
  test("B1: nothing while nothing is busy; busy partitions with when to come back; once more when it is over", async () => {
    const fleet = new MemoryFleet();
    const partitions = new Map([
      ["d-0", loaded(99)],
      ["d-1", loaded(10)],
    ]);
    const reporter = reporterOf(fleet, partitions);
    await reporter.report();
    expect(await told(fleet)).toBeUndefined();
    await fleet.clock.advance(1000);
    partitions.set("d-0", loaded(400, 100));
    await reporter.report();
    expect(await told(fleet)).toEqual({
      v: 1,
      node: "n1",
      validMs: 3000,
      partitions: { "d-0": { waiting: 400, retryAfterMs: 2000 } },
    });
    await fleet.clock.advance(1000);
    partitions.set("d-0", loaded(0, 500));
    await reporter.report();
    expect((await told(fleet))?.partitions).toEqual({});
    const { seq } = (await fleet.outsider.fleet.get("busy.n1")) ?? { seq: 0 };
    await reporter.report();
    expect((await fleet.outsider.fleet.get("busy.n1"))?.seq).toBe(seq);
  });

  test("B2: busy until half of it is left", async () => {
    const fleet = new MemoryFleet();
    const partitions = new Map([["d-0", loaded(100)]]);
    const reporter = reporterOf(fleet, partitions);
    const busyWith = async (pending: number): Promise<boolean> => {
      partitions.set("d-0", loaded(pending));
      await reporter.report();
      return reporter.busy.has("d-0");
    };
    expect([await busyWith(99), await busyWith(100), await busyWith(50), await busyWith(49)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  test("what a stream keeps for a partition that is not read counts, by its share", async () => {
    const fleet = new MemoryFleet();
    const key = fleet.key("resting", "a");
    for (let n = 0; n < 200; n += 1) await fleet.send(key, { type: "ADD", n });
    const reporter = reporterOf(fleet, new Map([[key.slice(0, 3), loaded(0, 0, true)]]));
    await reporter.report();
    expect((await told(fleet))?.partitions).toEqual({ [key.slice(0, 3)]: { waiting: 100, retryAfterMs: 10_000 } });
  });
});
