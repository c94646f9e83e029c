import type { Heartbeat, Lease } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { fleetOverview } from "./fleet-overview.ts";

const manifest = { pools: { d: 4, gpu: 2 }, shards: 2 };
const NOW = 1_000_000;

const node = (name: string, given: Partial<Heartbeat> = {}, silentMs = 500) => ({
  v: 1 as const,
  name,
  incarnation: `${name}:00000001`,
  startedAtMs: 0,
  pools: ["d"],
  types: [],
  formats: [1],
  machines: {},
  state: "serving" as const,
  actors: 0,
  jobs: 0,
  custody: [],
  storedAtMs: NOW - silentMs,
  ...given,
});

const lease = (partition: string, holder: string, state: Lease["state"] = "held"): Lease => ({
  v: 1,
  partition,
  epoch: 3,
  state,
  holder,
  generation: "g",
  cursor: 7,
  highest: 9,
  floorMs: 0,
  token: "t",
});

describe("the fleet as an operator sees it", () => {
  const nodes = [node("a"), node("b", {}, 6001), node("c", { state: "left" })];
  const leases = [
    { ...lease("d-0", "a:00000001"), late: 5 },
    lease("d-1", "b:00000001"),
    lease("d-2", "a:00000001", "released"),
    lease("d-3", "a:00000000"),
  ];
  const { partitions, unowned, nodes: seen } = fleetOverview(manifest, { nodes, leases }, NOW, new Map([["d-0", 2]]));

  test("a partition is owned by a live incarnation that holds its lease, and by nobody else", () => {
    expect(partitions.map(({ partition, owner, why }) => [partition, owner ?? why])).toEqual([
      ["d-0", "a"],
      ["d-1", "its owner b:00000001 is gone"],
      ["d-2", "released by a:00000001"],
      ["d-3", "its owner a:00000000 is gone"],
      ["gpu-0", "no live node serves pool gpu"],
      ["gpu-1", "no live node serves pool gpu"],
    ]);
    expect(unowned).toEqual(["d-1", "d-2", "d-3", "gpu-0", "gpu-1"]);
    expect(partitions[0]).toEqual({ partition: "d-0", owner: "a", epoch: 3, cursor: 7, lag: 2, late: 5 });
    expect(partitions[1]?.late).toBe(0);
  });

  test("a node whose heartbeat is older than two of its lease times is silent, one that left has left", () => {
    expect(seen.map(({ name, state, partitions: owned }) => [name, state, owned])).toEqual([
      ["a", "serving", 1],
      ["b", "silent", 1],
      ["c", "left", 0],
    ]);
    const patient = fleetOverview(manifest, { nodes: [node("b", { ttlMs: 4000 }, 6001)], leases: [] }, NOW);
    expect(patient.nodes[0]?.state).toBe("serving");
  });
});
