import { CRASH_POINTS, RETENTION_CRASH_POINTS } from "@holdfast/runtime/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";

const ITEMS = 2;
const Output = z.object({
  results: z.array(z.object({ n: z.number(), receipt: z.object({ kind: z.literal("charge"), key: z.string() }) })),
  progress: z.array(z.number()),
  shipped: z.object({ kind: z.literal("ship"), key: z.string() }),
});

let cluster: Cluster;
let run = 0;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

/** Points that are only reached while somebody's work is taken over, or handed over. */
const TAKEOVER_POINTS: readonly string[] = ["after-lease-claim", "after-barrier", "mid-rehydration"];

/** One order with two items, and a node that dies at a crash point in the middle of it; another one goes on. */
async function orderWithCrash(point: string, nth: number, leaseTtlMs: number): Promise<void> {
  run += 1;
  const namespace = `c${run}`;
  const crash = { point, nth };
  const isTakeover = TAKEOVER_POINTS.includes(point);
  const start = (name: string, plan?: typeof crash): Promise<StartedProcess> =>
    cluster.startNode(namespace, { name, ...(plan !== undefined && { crash: plan }) }, { leaseTtlMs });

  const first = await start("first", isTakeover ? undefined : crash);
  const client = await cluster.client(namespace);
  try {
    const sent = client.holdfast.start(
      "order",
      "o1",
      { items: ITEMS, waitMs: isTakeover ? 400 : 30 },
      { idempotencyKey: "o1", timeoutMs: 5000 },
    );
    let victim = first;
    if (isTakeover) {
      await waitUntil("work is in flight", async () => (await client.holdfast.read.headers("item")).length === ITEMS);
      await first.kill();
      victim = await start("victim", crash);
    } else if (point === "before-release") await start("asker"); // asks for partitions, so that some are given away
    await waitUntil(`the victim dies at ${point}`, () => victim.child.signalCode !== null, {
      timeoutMs: 20_000,
      dump: () => victim.log(),
    });
    await start("survivor");
    const key = client.holdfast.key("order", "o1");
    const record = await cluster.ended(client, key, 40_000 + 3 * leaseTtlMs);
    await sent;
    const output = Output.parse(record.snapshot.output);

    // Each child's result was applied once, each of its messages once and in order.
    expect(output.results.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(output.progress.toSorted((a, b) => a - b)).toEqual([0, 1, 1000, 1001]);
    for (const n of [0, 1]) expect(output.progress.indexOf(n)).toBeLessThan(output.progress.indexOf(n + 1000));

    // Outside: every effect happened once, whatever was tried.
    const keys = [output.shipped.key, ...output.results.map(({ receipt }) => receipt.key)];
    const entries = await cluster.entries();
    const attempts = entries.filter((entry) => entry.line === "attempt");
    for (const key of keys) {
      const numbers = attempts.filter((entry) => entry.idempotencyKey === key).map(({ attempt }) => attempt);
      const applied = entries.filter((entry) => entry.line === "applied" && numbers.includes(entry.attempt));
      expect(applied, key).toHaveLength(1);
    }
    expect(new Set(keys).size).toBe(ITEMS + 1);

    // What is stored agrees: one record per child, one content per revision.
    const evidence = await cluster.evidence(namespace);
    expect(evidence.actors.filter(({ type }) => type === "item")).toHaveLength(ITEMS);
    expect(evidence.contradictions).toEqual([]);
    const applied = [...evidence.journals]
      .flatMap(([actor, steps]) => (actor.includes(".order.") ? steps : []))
      .map(({ event }) => event.type);
    expect(
      applied.filter((type) => type.startsWith("xstate.done.actor.item-")).toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(["xstate.done.actor.item-0", "xstate.done.actor.item-1"]);
    expect(victim.child.signalCode).toBe("SIGKILL");
  } finally {
    await client.close();
    await cluster.stopNodes(namespace);
  }
}

/** Short, but where partitions must be given away, not taken from somebody who is only slow on a busy machine. ms */
const leaseOf = (point: string): number => (point === "before-release" ? 3000 : 600);

/** The other ones are reached when everything is over: see retention-kills.test.ts. */
const atWork = CRASH_POINTS.filter((point) => !RETENTION_CRASH_POINTS.some((other) => other === point));

describe.concurrent.each(atWork)("a node killed at %s loses and doubles nothing", (point) => {
  test.concurrent.each([1, 2, 3])("occasion %i", { timeout: 90_000 }, (nth) =>
    orderWithCrash(point, nth, leaseOf(point)),
  );

  test.concurrent("with the lease time that is shipped", { timeout: 120_000 }, () => orderWithCrash(point, 1, 3000));
});

test("over all of them the ledger has no effect twice, for one call or for one key", async () => {
  const { attempts, applied, duplicateEffects } = await cluster.figures();
  expect({ duplicateEffects, enough: applied > 0 && attempts >= applied }).toEqual({
    duplicateEffects: 0,
    enough: true,
  });
});
