import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

const TTL_MS = 3000;

describe("a node that died", () => {
  test("is found when its TTL is over, at whatever moment of the others' heartbeats it was last heard of", async () => {
    for (let offsetMs = 0; offsetMs < 1000; offsetMs += 130) {
      const fleet = new MemoryFleet({ settings: { leaseTtlMs: TTL_MS, movesAtOnce: 4 } });
      await fleet.alone("n1");
      await fleet.clock.advance(offsetMs);
      const dying = await fleet.start("n2");
      await fleet.until("it serves its share", () => dying.node.partitions.size > 0);
      await fleet.clock.advance(5000);
      const moved = [...dying.node.partitions.keys()][0] ?? "";
      const heard = (): number | undefined => fleet.processes[0]?.node.view.nodes.get("n2")?.movedAtMs;
      const before = heard();
      await fleet.until("its next heartbeat is seen", () => heard() !== before);
      dying.kill();
      await fleet.until("its partition is claimed", () => fleet.lease(moved)?.holder.startsWith("n1:") === true);
      const silentMs = fleet.clock.monotonicMs() - (heard() ?? 0);
      expect(silentMs, `heard of ${offsetMs} ms after a turn`).toBeGreaterThanOrEqual(TTL_MS);
      expect(silentMs, `heard of ${offsetMs} ms after a turn`).toBeLessThan(TTL_MS + 200);
    }
  });
});
