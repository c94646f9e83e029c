import { connectNats, purgeBelow, type Link } from "@holdfast/jetstream";
import { parseActorKey, shardOf, subjectsOf } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { NodeFleet } from "../harness/node-fleet.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

const NAMESPACE = "main";
const Row = z.object({ key: z.string(), kind: z.string(), node: z.string(), fix: z.string(), firstMs: z.number() });
const Rows = z.object({ stuck: z.array(Row) });

let cluster: Cluster;
let fleet: NodeFleet;
let client: Client;
let link: Link;
beforeAll(async () => {
  cluster = await Cluster.start();
  const { url, user, password } = cluster.nats;
  fleet = new NodeFleet({
    servers: [url],
    user,
    password,
    namespace: NAMESPACE,
    ledgerUrl: cluster.ledgerUrl,
    runtime: { leaseTtlMs: 600, sweepMs: 1000 },
  });
  const node = await fleet.start("n1");
  client = await fleet.client();
  await fleet.serving(client, [node]);
  link = await connectNats({ servers: [url], user, pass: password, name: "vandal" });
});
afterAll(async () => {
  await fleet.stop();
  await client.close();
  await link.close();
  await cluster.stop();
});

/** An order with one item, whose delivery takes long. @returns their keys, once both are at rest */
async function order(id: string): Promise<{ readonly order: string; readonly item: string }> {
  const key = client.holdfast.key("order", id);
  await client.holdfast.start("order", id, { items: 1, waitMs: 3_600_000 });
  const item = await waitUntil(`order ${id} has its item`, async () => {
    const children = (await client.holdfast.read.actor(key))?.record.snapshot.children ?? {};
    return Object.values(children)[0]?.key;
  });
  await waitUntil(`${item} waits`, async () => {
    const stored = (await client.holdfast.read.actor(item))?.record;
    return stored?.snapshot.value === "settling" && stored.outbox.length === 0;
  });
  return { order: key, item };
}

/** What a bucket loses that was restored from a copy which is too old. */
async function loseRecord(key: string): Promise<void> {
  const subjects = subjectsOf(NAMESPACE);
  const shard = shardOf({ pools: { d: 8 }, shards: 2 }, parseActorKey(key).partition);
  const filter = subjects.actorSubject(shard, key);
  expect(await purgeBelow(link, { stream: subjects.actorsStream(shard), filter, belowSeq: 1_000_000_000 })).toBe(1);
}

test("I9: holdfast stuck lists a parent whose child is gone and a child whose parent is gone, and nobody else", async () => {
  const [whole, childless, orphaned] = [await order("whole"), await order("childless"), await order("orphaned")];
  const env = {
    HOLDFAST_NATS_URL: cluster.nats.url,
    HOLDFAST_NATS_USER: cluster.nats.user,
    HOLDFAST_NATS_PASSWORD: cluster.nats.password,
    HOLDFAST_NAMESPACE: NAMESPACE,
  };
  await loseRecord(childless.item);
  await loseRecord(orphaned.order);
  await waitUntil("both are listed", async () => (await client.holdfast.stuck.list()).length === 2, {
    dump: () => fleet.logs(),
  });
  const { stuck } = Rows.parse((await runCommand(["stuck", "--json"], { env })).json);
  expect(stuck.map(({ key, kind, node }) => ({ key, kind, node }))).toEqual(
    expect.arrayContaining([
      { key: childless.order, kind: "child-missing", node: "n1" },
      { key: orphaned.item, kind: "parent-gone", node: "n1" },
    ]),
  );
  expect(stuck).toHaveLength(2);
  expect(stuck.every(({ firstMs }) => Math.abs(Date.now() - firstMs) < 60_000)).toBe(true);
  const text = (await runCommand(["stuck", "--kind", "child-missing"], { env })).stdout;
  expect(text).toContain(`send ${childless.order} what ends its wait`);
  expect(text).not.toContain(orphaned.item);
  expect((await client.holdfast.read.actor(whole.item))?.record.status).toBe("active");
});
