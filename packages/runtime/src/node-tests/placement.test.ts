import { poolOf, rendezvousOwner } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { ActorDefinition } from "../actor-definition.ts";
import { defineActor } from "../actor-definition.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { testActors } from "./test-actors.ts";
import { restingVersion } from "./versions.machine.ts";

const MOVING = { settings: { movesAtOnce: 2, cursorFlushMs: 100 } };

const ownedBy = ({ node }: MemoryProcess): readonly string[] =>
  [...node.partitions].filter(([, owner]) => owner.isCaughtUp).map(([partition]) => partition);

const isBalanced = (
  fleet: MemoryFleet,
  processes: readonly MemoryProcess[],
  weights: readonly number[] = [],
): boolean => {
  const nodes = processes.map(({ name }, index) => ({ name, weight: weights[index] ?? 1 }));
  const all = Array.from({ length: fleet.broker.scheme.pools["d"] ?? 0 }, (_, n) => `d-${n}`);
  return processes.every((process) => {
    const mine = all.filter((partition) => rendezvousOwner(partition, nodes) === process.name);
    return mine.toSorted().join() === [...ownedBy(process)].toSorted().join();
  });
};

const taken = (fleet: MemoryFleet): number => fleet.events("partition.taken").length;

describe("partitions move", () => {
  test("as many as necessary when a node joins, leaves or has more weight, and then rest", async () => {
    const fleet = new MemoryFleet({ ...MOVING, pools: { d: 16 } });
    const a = await fleet.start("a");
    await fleet.serving(a, 16);
    expect(taken(fleet)).toBe(16);
    const b = await fleet.start("b", { weight: 3 });
    await fleet.until("both have their share", () => isBalanced(fleet, [a, b], [1, 3]));
    await fleet.clock.advance(10_000);
    expect(ownedBy(b).length).toBeGreaterThan(8);
    expect(taken(fleet)).toBe(16 + ownedBy(b).length);
    const before = taken(fleet);
    const left = ownedBy(b).length;
    await fleet.happened("b has left", b.node.drain());
    await fleet.until("a has all", () => ownedBy(a).length === 16);
    await fleet.clock.advance(10_000);
    expect(taken(fleet)).toBe(before + left);
  });

  test("of a dead node's partitions each goes to the one it belongs to, however long nothing was written there", async () => {
    const fleet = new MemoryFleet({ ...MOVING, pools: { d: 16 } });
    const [a, b, c] = [await fleet.start("a"), await fleet.start("b"), await fleet.start("c")];
    await fleet.until("all have their share", () => isBalanced(fleet, [a, b, c]));
    await fleet.clock.advance(60_000); // every lease is older than any patience
    const before = taken(fleet);
    const lost = ownedBy(c).length;
    c.kill();
    await fleet.until("the others share", () => isBalanced(fleet, [a, b]));
    await fleet.clock.advance(20_000);
    expect(taken(fleet)).toBe(before + lost);
  });

  test("F33: only two at a time to a node that joins", async () => {
    const fleet = new MemoryFleet({ ...MOVING, pools: { d: 16 } });
    const a = await fleet.start("a");
    await fleet.serving(a, 16);
    const b = fleet.make("b");
    const hold = b.holdAt("after-lease-claim");
    const second = b.holdAt("after-lease-claim");
    const started = b.node.start();
    await fleet.happened("b takes two", Promise.all([started, hold.reached, second.reached]));
    await fleet.clock.advance(30_000);
    expect(ownedBy(a)).toHaveLength(14);
    hold.release();
    second.release();
    await fleet.until("both have their share", () => isBalanced(fleet, [a, b]));
  });
});

describe("pools", () => {
  const farDefinitions = (fleet: MemoryFleet): readonly ActorDefinition[] =>
    testActors(fleet.desk).map((definition) =>
      definition.type === "helper" ? { ...definition, pool: "far" } : definition,
    );
  const nearDefinitions = (fleet: MemoryFleet): readonly ActorDefinition[] =>
    testActors(fleet.desk)
      .filter(({ type }) => type !== "helper")
      .map((definition) =>
        definition.type === "boss"
          ? { ...definition, childActors: { helper: { type: "helper", pool: "far" }, stranger: { type: "stranger" } } }
          : definition,
      );

  test("a node owns partitions of its pools only, and a pool without a node is an alarm of one node", async () => {
    const fleet = new MemoryFleet({ ...MOVING, pools: { d: 4, far: 4 } });
    const a = await fleet.start("a");
    const b = await fleet.start("b");
    await fleet.until("d is shared", () => isBalanced(fleet, [a, b]));
    expect(fleet.events("partition.unowned")).toEqual([]);
    await fleet.until("somebody raises the alarm", () => fleet.events("partition.unowned").length > 0);
    await fleet.clock.advance(30_000);
    expect(fleet.events("partition.unowned")).toMatchObject([{ fields: { partition: "far-*" } }]);
    const c = await fleet.start("c", { pools: ["far"] });
    await fleet.until("it has an owner", () => fleet.events("partition.owned").length === 1);
    expect(ownedBy(c).map(poolOf)).toEqual(["far", "far", "far", "far"]);
    expect([...ownedBy(a), ...ownedBy(b)].map(poolOf)).toEqual(["d", "d", "d", "d"]);
    expect(isBalanced(fleet, [a, b])).toBe(true);
  });

  test("a child of a pool that nobody serves waits there, and starts when a node of that pool joins", async () => {
    const fleet = new MemoryFleet({ ...MOVING, pools: { d: 4, far: 4 } });
    await fleet.alone("a", { definitions: nearDefinitions(fleet) });
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    expect(poolOf(helper.split(".")[0] ?? "")).toBe("far");
    await fleet.until("the alarm says so", () => fleet.events("partition.unowned").length === 1);
    expect(fleet.record(helper)).toBeUndefined();
    await fleet.start("far", { pools: ["far"], definitions: farDefinitions(fleet) });
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
  });
});

describe("what is in a partition decides who may have it", () => {
  const others = (fleet: MemoryFleet, type: string): readonly ActorDefinition[] =>
    testActors(fleet.desk).filter((definition) => definition.type !== type);
  const one = restingVersion("resting", "1", ["old"]);
  const two = restingVersion("resting", "2", ["new", "old"]);

  test("F31: a node that serves the type that is missing asks for the partition, and what waited starts", async () => {
    const fleet = new MemoryFleet(MOVING);
    const first = await fleet.alone("n1", { definitions: others(fleet, "helper") });
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    const reported = (): boolean =>
      [...first.node.partitions.values()].some(({ reports }) => reports.get(helper)?.kind === "unserved");
    await fleet.until("it is reported", reported);
    const second = await fleet.start("n2", { weight: 0.01 });
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
    expect(ownedBy(second)).toContain(helper.split(".")[0]);
    expect(reported()).toBe(false);
  });

  test("F31: while an old build lives nothing new is written; when the last has left, new actors and loaded ones are", async () => {
    const fleet = new MemoryFleet({
      settings: { ...MOVING.settings, passivateMs: 500, sweepMs: 500, idleCleanMs: 100 },
    });
    const old = await fleet.alone("old", {
      definitions: [...others(fleet, "resting"), defineActor({ type: "resting", machine: one })],
    });
    const mixed = [...others(fleet, "resting"), defineActor({ type: "resting", machine: two, formerMachines: [one] })];
    const before = await fleet.born("resting", "before");
    const fresh = await fleet.start("new", { definitions: mixed });
    await fleet.until("both have their share", () => isBalanced(fleet, [old, fresh]));
    const keys: string[] = [];
    for (let n = 0; n < 8; n += 1) keys.push(await fleet.born("resting", `r${n}`));
    expect(keys.some((key) => ownedBy(fresh).includes(key.split(".")[0] ?? ""))).toBe(true); // or this test shows nothing
    for (const key of keys) expect(fleet.record(key)?.machine.version).toBe("1");
    await fleet.happened("the old build has left", old.node.drain());
    await fleet.until("the new build has all", () => ownedBy(fresh).length === 4);
    await fleet.clock.advance(2000);
    const after = await fleet.born("resting", "after");
    expect(fleet.record(after)?.machine.version).toBe("2");
    await fleet.send(before, { type: "ADD", n: 1 });
    await fleet.until("the old one goes on in the new build", () => fleet.record(before)?.machine.version === "2");
    expect(fleet.context(before)).toEqual({ seen: [1] });
  });

  test("F31: an old build that comes back gets no partition in which something new is written", async () => {
    const fleet = new MemoryFleet(MOVING);
    const fresh = await fleet.alone("new", {
      definitions: [...others(fleet, "resting"), defineActor({ type: "resting", machine: two, formerMachines: [one] })],
    });
    const key = await fleet.born("resting", "r");
    expect(fleet.record(key)?.snapshot.value).toBe("new");
    const partition = key.split(".")[0] ?? "";
    const old = await fleet.start("old", {
      weight: 1000,
      definitions: [...others(fleet, "resting"), defineActor({ type: "resting", machine: one })],
    });
    await fleet.until("it has the others", () => ownedBy(old).length === 3);
    await fleet.clock.advance(20_000);
    expect(ownedBy(fresh)).toEqual([partition]);
    const message = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it goes on", () => fleet.outcomes(message).length > 0);
    expect(fleet.record(key)?.machine.version).toBe("2");
    // Whoever is asked to begin one now begins it in what both can read.
    const other = await fleet.born("resting", "elsewhere");
    expect(fleet.record(other)?.machine.version).toBe("1");
  });

  test("F31: a lease lists what was written before it is written", async () => {
    const fleet = new MemoryFleet(MOVING);
    const process = await fleet.alone("n1");
    const key = fleet.key("tally", "t");
    const hold = process.holdAt("before-create", key);
    await fleet.begin("tally", "t");
    await fleet.happened("the record is about to be stored", hold.reached);
    const lease = fleet.broker.writesOf(key).length === 0 ? fleet.lease(key.split(".")[0] ?? "") : undefined;
    expect(lease?.needs).toEqual({ formats: [1], machines: { tally: "1" } });
    hold.release();
  });
});
