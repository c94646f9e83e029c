import { connectNats, lastSeqOf, purgeBelow, type Link } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { subjectsOf } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { Cluster, type CrashPlan } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";

const ITEMS = 3;
const NOTE = "note of an item, repeated; ".repeat(200);
const Output = z.object({ results: z.array(z.object({ n: z.number(), note: z.string() })) });

let cluster: Cluster;
let link: Link;
beforeAll(async () => {
  cluster = await Cluster.start();
  link = await connectNats({
    servers: [cluster.nats.url],
    name: "test",
    user: cluster.nats.user,
    pass: cluster.nats.password,
    inboxPrefix: inboxPrefixOf("node"),
  });
});
afterAll(async () => {
  await link.close();
  await cluster.stop();
});

/** An order whose items have large inputs, begun on a node that dies as planned. */
async function begunAndKilled(
  namespace: string,
  crash: CrashPlan,
): Promise<{ readonly client: Client; readonly key: string }> {
  const victim = await cluster.startNode(namespace, { name: "victim", crash }, { leaseTtlMs: 600 });
  const client = await cluster.client(namespace);
  const input = { items: ITEMS, note: NOTE };
  void client.holdfast.start("order", "o1", input, { idempotencyKey: "o1", timeoutMs: 60_000 }).catch(() => undefined);
  await waitUntil("the victim is dead", () => victim.child.signalCode !== null, { dump: () => victim.log() });
  return { client, key: client.holdfast.key("order", "o1") };
}

describe.concurrent.each([
  { when: "between the blobs and the commit that names them", point: "before-create", match: ".order." },
  { when: "after that commit", point: "after-commit", match: ".order." },
  { when: "before the child is created", point: "before-create", match: ".item." },
])("F6, F27: a node killed $when", ({ point, match }) => {
  test("loses nothing: every item has its input, once", { timeout: 60_000 }, async () => {
    const namespace = `b${point[0]}${match[1]}`;
    const { client, key } = await begunAndKilled(namespace, { point, match, nth: 1 });
    try {
      await cluster.startNode(namespace, { name: "survivor" }, { leaseTtlMs: 600 });
      const record = await cluster.ended(client, key);
      const { results } = Output.parse(record.snapshot.output);
      expect(results.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
      expect(new Set(results.map(({ note }) => note))).toEqual(new Set([NOTE]));
      const item = await client.holdfast.read.headers("item");
      expect(item).toHaveLength(ITEMS);
      const journal = await client.holdfast.read.journal(item[0]?.key ?? "");
      expect(journal[0]?.event).toMatchObject({ type: "xstate.init", input: { note: NOTE } });
    } finally {
      await client.close();
      await cluster.stopNodes(namespace);
    }
  });
});

test(
  "F28: blobs that are gone: no child starts without its input, its parent ends with HF-3007",
  { timeout: 60_000 },
  async () => {
    const namespace = "bgone";
    const { client, key } = await begunAndKilled(namespace, { point: "after-commit", match: ".order.", nth: 1 });
    try {
      const stream = `OBJ_${subjectsOf(namespace).blobsBucket}`;
      const belowSeq = (await lastSeqOf(link, stream, [">"])) + 1;
      expect(await purgeBelow(link, { stream, belowSeq })).toBeGreaterThan(0);
      await cluster.startNode(namespace, { name: "survivor" }, { leaseTtlMs: 600 });
      const record = await cluster.ended(client, key);
      expect(record).toMatchObject({ status: "error", snapshot: { error: { code: "HF-3007" } } });
      expect(await client.holdfast.read.headers("item")).toEqual([]);
    } finally {
      await client.close();
      await cluster.stopNodes(namespace);
    }
  },
);
