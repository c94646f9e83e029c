import { rendezvousOwner, type Lease } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { planPlacement, type PlacementInput } from "./placement.ts";

const partitions = Array.from({ length: 8 }, (_, n) => `d-${n}`);
const lease = (partition: string, holder: string, state: Lease["state"] = "held"): Lease => ({
  v: 1,
  partition,
  epoch: 3,
  state,
  holder,
  generation: "g",
  cursor: 1,
  highest: 0,
  floorMs: 0,
  token: "t",
});

function plan(given: Partial<PlacementInput>) {
  return planPlacement({
    me: "a",
    partitions,
    candidates: new Map([
      ["a", "a:1"],
      ["b", "b:1"],
    ]),
    leaseOf: () => undefined,
    wantedBy: () => undefined,
    ttlMs: 3000,
    movesAtOnce: 2,
    ...given,
  });
}

const won = (node: string): readonly string[] =>
  partitions.filter((partition) => rendezvousOwner(partition, ["a", "b"]) === node);

describe("placement", () => {
  test("a node claims what rendezvous gives it and leaves the rest to the other", () => {
    expect(plan({}).claim).toEqual(won("a"));
    expect(plan({}).unowned).toEqual(won("b"));
  });

  test("F33: a living lease is never claimed, it is asked for", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "b:1"), idleMs: 99_999, holderAlive: true });
    expect(plan({ leaseOf })).toEqual({ claim: [], want: won("a").slice(0, 2), release: [], unowned: [] });
  });

  test("an owner releases only to the winner that asked, two at a time", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "a:1"), idleMs: 0, holderAlive: true });
    expect(plan({ leaseOf }).release).toEqual([]);
    expect(plan({ leaseOf, wantedBy: () => "b:1" }).release).toEqual(won("b").slice(0, 2));
    expect(plan({ leaseOf, wantedBy: () => "b:0" }).release).toEqual([]); // an incarnation that is gone
  });

  test("the lease of a dead holder is claimed by the winner at once, and by anyone after a while", () => {
    const dead = (idleMs: number) => (partition: string) => ({
      lease: lease(partition, "c:1"),
      idleMs,
      holderAlive: false,
    });
    expect(plan({ leaseOf: dead(0) }).claim).toEqual(won("a"));
    expect(plan({ leaseOf: dead(9000) }).claim).toEqual(partitions);
  });

  test("F14: a lease of another incarnation of my name is not mine", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "a:0"), idleMs: 0, holderAlive: false });
    expect(plan({ leaseOf }).claim).toEqual(won("a"));
    expect(plan({ leaseOf, wantedBy: () => "b:1" }).release).toEqual([]);
  });

  test("a node that leaves claims nothing", () => {
    expect(plan({ candidates: new Map([["b", "b:1"]]) }).claim).toEqual([]);
  });
});
