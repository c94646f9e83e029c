import { rendezvousOwner, type Lease } from "@holdfast/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LiveNode } from "./eligible-nodes.ts";
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

const node = (name: string, given: Partial<LiveNode> = {}): LiveNode => ({
  name,
  incarnation: `${name}:1`,
  pools: ["d"],
  weight: 1,
  types: ["order"],
  formats: [1],
  machines: { order: "1#abc" },
  ...given,
});

function plan(given: Partial<PlacementInput>) {
  return planPlacement({
    me: "a",
    partitions,
    nodes: [node("a"), node("b")],
    leaseOf: () => undefined,
    unownedMs: () => 0,
    wantedBy: () => undefined,
    moving: new Set(),
    ttlMs: 3000,
    movesAtOnce: 2,
    ...given,
  });
}

const won = (name: string): readonly string[] =>
  partitions.filter((partition) => rendezvousOwner(partition, [node("a"), node("b")]) === name);

describe("placement", () => {
  test("a node claims what rendezvous gives it and leaves the rest to the other", () => {
    expect(plan({}).claim).toEqual(won("a"));
    expect(plan({}).unowned).toEqual(won("b"));
  });

  test("F33: a living lease is never claimed, it is asked for", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "b:1"), holderAlive: true });
    expect(plan({ leaseOf })).toEqual({ claim: [], want: won("a").slice(0, 2), release: [], unowned: [] });
  });

  test("an owner releases only to the winner that asked, two at a time", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "a:1"), holderAlive: true });
    expect(plan({ leaseOf }).release).toEqual([]);
    expect(plan({ leaseOf, wantedBy: () => "b:1" }).release).toEqual(won("b").slice(0, 2));
    expect(plan({ leaseOf, wantedBy: () => "b:0" }).release).toEqual([]); // an incarnation that is gone
  });

  test("the lease of a dead holder is claimed by the winner at once, and by anyone after a while", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "c:1"), holderAlive: false });
    expect(plan({ leaseOf }).claim).toEqual(won("a"));
    expect(plan({ leaseOf, unownedMs: () => 8999 }).claim).toEqual(won("a"));
    expect(plan({ leaseOf, unownedMs: () => 9000 }).claim).toEqual(partitions);
  });

  test("F14: a lease of another incarnation of my name is not mine", () => {
    const leaseOf = (partition: string) => ({ lease: lease(partition, "a:0"), holderAlive: false });
    expect(plan({ leaseOf }).claim).toEqual(won("a"));
    expect(plan({ leaseOf, wantedBy: () => "b:1" }).release).toEqual([]);
  });

  test("a node that leaves claims nothing", () => {
    expect(plan({ nodes: [node("b")], unownedMs: () => 99_999 }).claim).toEqual([]);
  });

  test("what is on the move counts: at most two planned moves at a time, and what nobody owns is claimed all the same", () => {
    const held = (holder: string) => (partition: string) => ({ lease: lease(partition, holder), holderAlive: true });
    expect(plan({ leaseOf: held("b:1"), moving: new Set(["x-1"]) }).want).toHaveLength(1);
    expect(plan({ leaseOf: held("b:1"), moving: new Set(["x-1", "x-2"]) }).want).toEqual([]);
    const wantedBy = (): string => "b:1";
    expect(plan({ leaseOf: held("a:1"), wantedBy, moving: new Set(["x-1"]) }).release).toHaveLength(1);
    expect(plan({ moving: new Set(["x-1", "x-2", "x-3"]) }).claim).toEqual(won("a"));
  });

  test("a node of another pool never wins, wants or claims a partition", () => {
    const gpu = node("a", { pools: ["gpu"] });
    expect(plan({ nodes: [gpu, node("b")], unownedMs: () => 99_999 }).claim).toEqual([]);
    const alone = plan({ nodes: [node("a"), node("b", { pools: ["gpu"] })] });
    expect(alone.claim).toEqual(partitions);
  });

  const needing = (needs: Lease["needs"], holder = "b:1") => ({
    leaseOf: (partition: string) => ({ lease: { ...lease(partition, holder), needs }, holderAlive: true }),
  });

  test("F31: a partition goes to a node that serves the types in it, and to a version that is new enough", () => {
    const typed = needing({ formats: [1], machines: { task: "" } });
    expect(plan({ ...typed, nodes: [node("a"), node("b", { types: ["order", "task"] })] }).want).toEqual([]);
    expect(plan({ ...typed, nodes: [node("a", { types: ["order", "task"] }), node("b")] }).want).toHaveLength(2);
    const newer = needing({ formats: [1], machines: { order: "2" } });
    expect(plan({ ...newer, nodes: [node("a", { machines: { order: "10#abc" } }), node("b")] }).want).toHaveLength(2);
    expect(plan({ ...newer, nodes: [node("a"), node("b", { machines: { order: "2#abc" } })] }).want).toEqual([]);
  });

  test("F31: while no node can run everything in a partition it stays with those that can run most of it", () => {
    const { leaseOf } = needing({ formats: [1], machines: { order: "1", task: "" } }, "a:1");
    expect(plan({ leaseOf, nodes: [node("a"), node("b", { types: [] })], wantedBy: () => "b:1" }).release).toEqual([]);
  });

  test("F31: nobody claims what is written in a format that he cannot read, however long nobody owns it", () => {
    const leaseOf = (partition: string) => ({
      lease: { ...lease(partition, "c:1"), needs: { formats: [1, 2], machines: {} } },
      holderAlive: false,
    });
    expect(plan({ leaseOf, unownedMs: () => 99_999 })).toMatchObject({ claim: [], unowned: partitions });
    expect(plan({ leaseOf, nodes: [node("a", { formats: [1, 2] }), node("b")] }).claim).toEqual(partitions);
  });
});

/** Who owns what once nothing moves any more. */
function settle(nodes: readonly LiveNode[], all: readonly string[]): ReadonlyMap<string, string | undefined> {
  return new Map(all.map((partition) => [partition, rendezvousOwner(partition, nodes)]));
}

describe("the least that has to move", () => {
  const all = Array.from({ length: 64 }, (_, n) => `d-${n}`);
  const fleet = fc.uniqueArray(
    fc.record({
      name: fc.stringMatching(/^[a-z0-9-]{1,12}$/),
      weight: fc.double({ min: 0.01, max: 1000, noNaN: true }),
    }),
    { minLength: 1, maxLength: 8, selector: ({ name }) => name },
  );
  const nodesOf = (given: readonly { readonly name: string; readonly weight: number }[]): readonly LiveNode[] =>
    given.map(({ name, weight }) => node(name, { weight }));

  test("a join moves partitions to the joiner only, a leave moves only those of the leaver", () => {
    fc.assert(
      fc.property(fleet, fc.nat(), (given, pick) => {
        const nodes = nodesOf(given);
        const changed = nodes[pick % nodes.length]?.name;
        const before = settle(
          nodes.filter(({ name }) => name !== changed),
          all,
        );
        const after = settle(nodes, all);
        for (const partition of all)
          if (after.get(partition) !== before.get(partition)) expect(after.get(partition)).toBe(changed);
      }),
    );
  });

  test("a change of weight moves partitions only to or from that node", () => {
    fc.assert(
      fc.property(fleet, fc.nat(), fc.double({ min: 1.01, max: 10, noNaN: true }), (given, pick, factor) => {
        const nodes = nodesOf(given);
        const changed = nodes[pick % nodes.length]?.name;
        const heavier = nodes.map((one) => (one.name === changed ? { ...one, weight: one.weight * factor } : one));
        const before = settle(nodes, all);
        const after = settle(heavier, all);
        for (const partition of all)
          if (after.get(partition) !== before.get(partition)) expect(after.get(partition)).toBe(changed);
      }),
    );
  });

  test("nodes that plan by the same view ask for, give away and claim exactly the difference, and then rest", () => {
    fc.assert(
      fc.property(fleet, fc.nat(), (given, pick) => {
        const nodes = nodesOf(given);
        const target = settle(nodes, all);
        const joiner = nodes[pick % nodes.length]?.name;
        const before = settle(
          nodes.filter(({ name }) => name !== joiner),
          all,
        );
        const owner = new Map(before);
        let moves = 0;
        for (let round = 0; round < 200; round += 1) {
          const wants = new Map<string, string>();
          const leaseOf = (partition: string) => {
            const holder = owner.get(partition);
            return holder === undefined ? undefined : { lease: lease(partition, `${holder}:1`), holderAlive: true };
          };
          const base = { partitions: all, nodes, leaseOf };
          const plans = nodes.map(({ name }) => [name, plan({ ...base, me: name })] as const);
          for (const [name, { want }] of plans) for (const partition of want) wants.set(partition, `${name}:1`);
          const wantedBy = (partition: string): string | undefined => wants.get(partition);
          for (const [name, { claim }] of plans) for (const partition of claim) owner.set(partition, name);
          for (const { name } of nodes) {
            const { release } = plan({ ...base, me: name, wantedBy });
            expect(release.length).toBeLessThanOrEqual(2);
            for (const partition of release) {
              owner.set(partition, wants.get(partition)?.split(":")[0]);
              moves += 1;
            }
          }
          if (wants.size === 0 && plans.every(([, { claim }]) => claim.length === 0)) break;
        }
        expect(owner).toEqual(target);
        const needed = all.filter((partition) => before.get(partition) !== target.get(partition));
        expect(moves).toBe(nodes.length === 1 ? 0 : needed.length);
      }),
      { numRuns: 30 },
    );
  });
});
