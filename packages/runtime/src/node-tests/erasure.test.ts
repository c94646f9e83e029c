import { parseActorKey } from "@holdfast/protocol";
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineActor } from "../actor-definition.ts";
import { relativeMachine } from "./family-tree.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

const Relative = z.looseObject({ isErased: z.boolean() });
const isErased = (context: unknown): boolean => Relative.safeParse(context).data?.isErased === true;

const relatives = () => [
  defineActor({
    type: "relative",
    machine: relativeMachine,
    childActors: { child: { type: "relative", closePolicy: "detach" } },
    listFields: (context) => ({ status: "some", ...(!isErased(context) && { title: "planted-title" }) }),
    erasedFields: ({ status = "" }) => ({ status, deleted: true }),
    retention: (context) => ({ erase: isErased(context), sharedWith: readers }),
  }),
];

const HOUR_MS = 3_600_000;
const SECRET = "planted-secret";
const settings = {
  keepEndedMs: 1000 * HOUR_MS,
  keepTombstoneMs: 24 * HOUR_MS,
  retentionMs: 1000,
  eraseAfterMs: 500,
  passivateMs: 500,
  sweepMs: 500,
  movesAtOnce: 2,
};

const never = new AbortController().signal;

let readers: readonly string[] = [];
let fleet: MemoryFleet;
beforeEach(() => {
  fleet = new MemoryFleet({ retains: true, settings });
});

const start = (name: string): Promise<MemoryProcess> => fleet.start(name, { definitions: relatives() });

/** Root, its child and the child of that: keys from above. */
async function threeGenerations(): Promise<readonly [string, string, string]> {
  const root = await fleet.born("relative", "root", { secret: SECRET });
  const have = { type: "HAVE", id: "c", secret: SECRET };
  await fleet.send(root, have);
  const child = await fleet.child(root, "c");
  await fleet.until("the child exists", () => fleet.record(child) !== undefined);
  await fleet.send(child, have);
  const grandchild = await fleet.child(child, "c");
  await fleet.until("the grandchild exists", () => fleet.record(grandchild) !== undefined);
  return [root, child, grandchild];
}

async function end(key: string, event: "END" | "ERASE" = "END"): Promise<void> {
  await fleet.send(key, { type: event });
  await fleet.until(`${key} has ended`, () => fleet.record(key)?.status === "done");
}

const isErasedAt = (key: string): boolean =>
  fleet.record(key)?.tombstone !== undefined &&
  fleet.broker.journalOf(key).length === 0 &&
  !JSON.stringify([fleet.record(key), fleet.header(key)]).includes("planted");

async function orders(): Promise<readonly string[]> {
  const { removal } = fleet.outsider;
  const wanted = { isDue: () => false, fromSeq: 1, limit: 100 };
  const found = ["d-0", "d-1", "d-2", "d-3"].map((partition) => removal.survey(partition, wanted, never));
  return (await Promise.all(found)).flatMap((survey) => survey.orders.map(({ key }) => key));
}

async function noOrderIsLeft(): Promise<void> {
  for (let looks = 0; (await orders()).length > 0; looks += 1) {
    if (looks > 100) throw new Error(`orders are left: ${(await orders()).join(" ")}\n${fleet.dump()}`);
    await fleet.clock.advance(settings.retentionMs);
  }
}

describe("an actor that is erased takes with it what it ever started", () => {
  test("also what had ended before, and what that had started, on whichever node it lives", async () => {
    const nodes = [await start("n1"), await start("n2")];
    await fleet.until("both serve", () => nodes.every(({ node }) => node.partitions.size > 0));
    const keys = await threeGenerations();
    const homes = keys.map((key) => nodes.findIndex(({ node }) => node.partitions.has(parseActorKey(key).partition)));
    expect(new Set(homes)).toEqual(new Set([0, 1]));
    for (const key of keys.toReversed().slice(0, 2)) await end(key);
    await end(keys[0], "ERASE");
    await fleet.until("the whole family is erased", () => keys.every(isErasedAt));
    expect(fleet.header(keys[2])).toMatchObject({ status: "done", list: { status: "some", deleted: true } });
    await noOrderIsLeft();
  });

  test("what ends later goes when it has ended, and not before", async () => {
    await start("n1");
    const [root, child, grandchild] = await threeGenerations();
    await end(grandchild);
    await end(root, "ERASE");
    await fleet.until("what had ended is erased", () => isErasedAt(grandchild));
    await fleet.clock.advance(10 * settings.retentionMs);
    expect(fleet.record(child)).toMatchObject({ status: "active", snapshot: { context: { secret: SECRET } } });
    expect(await orders()).toEqual([child]);
    await end(child);
    await fleet.until("it is erased", () => isErasedAt(child));
    await noOrderIsLeft();
  });

  test("also what was made small before", async () => {
    const small = { ...settings, keepEndedMs: 2000 };
    await fleet.start("n1", { definitions: relatives(), settings: small });
    const [root, child, grandchild] = await threeGenerations();
    for (const key of [grandchild, child]) {
      await end(key);
      await fleet.until("it is a tombstone", () => fleet.record(key)?.tombstone !== undefined);
      expect(JSON.stringify(fleet.record(key))).toContain(SECRET);
    }
    await end(root, "ERASE");
    await fleet.until("both are erased", () => [child, grandchild].every(isErasedAt));
  });

  test("nothing that was not ordered goes: an actor that only ended keeps its children", async () => {
    await start("n1");
    const keys = await threeGenerations();
    for (const key of keys.toReversed()) await end(key);
    await fleet.clock.advance(20 * settings.retentionMs);
    expect(keys.filter(isErasedAt)).toEqual([]);
    expect(await orders()).toEqual([]);
  });

  test("G6: a node that dies between the orders and the tombstone, or after the tombstone, loses nothing of it", async () => {
    for (const [index, point] of (["before-tombstone", "after-tombstone"] as const).entries()) {
      fleet = new MemoryFleet({ retains: true, settings });
      const first = await start("n1");
      await fleet.serving(first);
      const keys = await threeGenerations();
      for (const key of keys.toReversed().slice(0, 2)) await end(key);
      const { reached } = first.stopAt(point, keys[0]);
      await end(keys[0], "ERASE");
      await fleet.happened(`${point} is reached`, reached);
      first.kill();
      await start("n2");
      await fleet.until(`the family is erased after ${index}`, () => keys.every(isErasedAt));
      await noOrderIsLeft();
    }
  });

  test("a child that others read stays whole until they have gone", async () => {
    await start("n1");
    const reader = await fleet.born("relative", "reader", { secret: "another" });
    readers = [reader];
    const [root, child, grandchild] = await threeGenerations();
    for (const key of [grandchild, child]) await end(key);
    await end(root, "ERASE");
    await fleet.clock.advance(10 * settings.retentionMs);
    expect([root, child].map((key) => fleet.record(key)?.tombstone)).toEqual([undefined, undefined]);
    readers = [];
    await fleet.until("both are erased", () => [child, grandchild].every(isErasedAt));
  });
});
