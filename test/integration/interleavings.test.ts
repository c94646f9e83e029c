import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "holdfast";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { NodeFleet } from "../harness/node-fleet.ts";
import { waitUntil } from "../harness/wait-until.ts";

const Packed = z.object({ key: z.string(), node: z.string() });
const Pings = z.object({ pings: z.number() });
const Shipped = z.object({ shipped: z.object({ key: z.string() }) });

let cluster: Cluster;
let gates: string;
beforeAll(async () => {
  cluster = await Cluster.start();
  gates = mkdtempSync(join(tmpdir(), "holdfast-gates-"));
});
afterAll(async () => {
  const { duplicateEffects } = await cluster.figures();
  await cluster.stop();
  rmSync(gates, { recursive: true });
  if (duplicateEffects > 0) throw new Error(`${duplicateEffects} effects happened twice`);
});

/** What a test works with: nodes of a namespace of its own, and the gate that its parcels wait for. */
interface World {
  readonly fleet: NodeFleet;
  readonly gate: string;
  openGate(): void;
}

/** Short, where somebody is to be taken for dead; as it is shipped, where nobody may be, however busy this machine is. ms */
const SOON = 600;
const SHIPPED = 3000;

/** Partitions stay where they are until a node dies or leaves. */
async function inNamespace(
  namespace: string,
  { on, leaseTtlMs }: { readonly on: Cluster; readonly leaseTtlMs: number },
  work: (world: World) => Promise<void>,
): Promise<void> {
  const gate = join(gates, namespace);
  const fleet = new NodeFleet({
    servers: [on.nats.url],
    user: on.nats.user,
    password: on.nats.password,
    namespace,
    ledgerUrl: on.ledgerUrl,
    runtime: { leaseTtlMs, movesAtOnce: 0 },
  });
  try {
    await work({ fleet, gate, openGate: () => writeFileSync(gate, "") });
  } finally {
    await fleet.stop();
  }
}

/** Starts parcels and waits until all of them are being packed. @returns their keys */
async function startParcels(client: Client, { fleet, gate }: World, ids: readonly string[]): Promise<string[]> {
  const kindOf = (id: string): string => (id.startsWith("once") ? "once" : "sure");
  await Promise.all(
    ids.map((id) => client.holdfast.start("parcel", id, { kind: kindOf(id), gate }, { idempotencyKey: id })),
  );
  const keys = ids.map((id) => client.holdfast.key("parcel", id));
  await waitUntil("all parcels are being packed", async () => {
    const running = await Promise.all(keys.map((key) => client.holdfast.read.actor(key)));
    const attempts = await fleet.attempts();
    return running.every((actor) =>
      Object.values(actor?.record.snapshot.children ?? {}).some(({ key }) => attempts.has(key)),
    );
  });
  return keys;
}

/** Waits until all have ended. @returns what their jobs said */
async function packed(client: Client, keys: readonly string[]): Promise<readonly z.infer<typeof Packed>[]> {
  const records = await Promise.all(keys.map((key) => cluster.ended(client, key)));
  return records.map(({ snapshot }) => Packed.parse(snapshot.output));
}

describe.concurrent("interleavings with real processes", () => {
  test("F5, F19: an owner that was stopped past its lease and goes on writes nothing any more, and no effect happens twice", () =>
    inNamespace("stopped", { on: cluster, leaseTtlMs: SOON }, async (world) => {
      const { fleet } = world;
      const first = await fleet.start("n1");
      await using client = await fleet.client();
      await fleet.serving(client, [first]);
      const orders = ["o1", "o2"];
      for (const id of orders)
        await client.holdfast.start("order", id, { items: 2, waitMs: 1500 }, { idempotencyKey: id });
      const parcels = await startParcels(client, world, ["sure1", "sure2", "sure3"]);
      const former = await client.holdfast.read.fleet();
      first.child.kill("SIGSTOP");
      const stoppedAtMs = Date.now();
      const second = await fleet.start("n2");
      await fleet.serving(client, [second]);
      const secondTries = async (): Promise<number> =>
        [...(await fleet.attempts()).values()].filter((nodes) => nodes.join() === "n1,n2").length;
      await waitUntil("the successor packs them", async () => (await secondTries()) >= parcels.length);
      // Nothing of it can lie in between, so the middle tells before from after whatever the clocks differ by.
      const halfwayMs = (stoppedAtMs + Date.now()) / 2;
      first.child.kill("SIGCONT");
      await waitUntil("the former owner has noticed", () => first.log().includes("partition.fenced"));
      world.openGate();
      const results = await packed(client, parcels);
      const ended = await Promise.all(orders.map((id) => cluster.ended(client, client.holdfast.key("order", id))));
      expect(results.map(({ node }) => node)).toEqual(parcels.map(() => "n2"));
      for (const { snapshot } of ended) expect(snapshot.output).toMatchObject({ shipped: { kind: "ship" } });
      const evidence = await cluster.evidence("stopped");
      expect(evidence.contradictions).toEqual([]);
      const late = [...evidence.journals.values()].flat().filter(({ node, atMs }) => node === "n1" && atMs > halfwayMs);
      expect(late).toEqual([]);
      // Who holds them by now is open: the former owner has joined again, and may have got its share back.
      const epochs = new Map(former.leases.map(({ partition, epoch }) => [partition, epoch]));
      const { leases } = await client.holdfast.read.fleet();
      expect(leases.length).toBe(epochs.size);
      for (const { partition, epoch } of leases) expect(epoch).toBeGreaterThan(epochs.get(partition) ?? Infinity);
    }));

  test("F22: a planned leave under running jobs moves everything at once; the jobs end where they are, none runs twice", () =>
    inNamespace("leaving", { on: cluster, leaseTtlMs: SHIPPED }, async (world) => {
      const { fleet } = world;
      const first = await fleet.start("n1");
      await using client = await fleet.client();
      await fleet.serving(client, [first]);
      const parcels = await startParcels(client, world, ["once1", "once2", "sure1", "sure2"]);
      const second = await fleet.start("n2");
      first.child.kill("SIGTERM");
      await fleet.serving(client, [second]); // while every job still runs
      expect(existsSync(world.gate)).toBe(false);
      const held = async () =>
        (await client.holdfast.read.fleet()).stuck
          .flatMap(({ reports }) => reports)
          .filter(({ kind }) => kind === "custody");
      await waitUntil("the new owner leaves all of them alone", async () => (await held()).length === parcels.length, {
        dump: () => fleet.logs(),
      });
      world.openGate();
      const results = await packed(client, parcels);
      expect(await first.exited).toEqual({ code: 0, signal: null });
      expect(results.map(({ node }) => node)).toEqual(parcels.map(() => "n1"));
      const attempts = await fleet.attempts();
      for (const { key } of results) expect(attempts.get(key)).toEqual(["n1"]);
      const headers = await client.holdfast.read.headers("parcel");
      expect(headers.map(({ writer }) => writer)).toEqual(parcels.map(() => second.hello["incarnation"]));
    }));

  test("I12: when the whole fleet dies and starts again, everything in flight comes to its end once", () =>
    inNamespace("restarted", { on: cluster, leaseTtlMs: SOON }, async (world) => {
      const { fleet } = world;
      const old = await Promise.all(["n1", "n2"].map((name) => fleet.start(name)));
      await using client = await fleet.client();
      await fleet.serving(client, old);
      const orders = ["o1", "o2", "o3"];
      await Promise.all(
        orders.map((id) => client.holdfast.start("order", id, { items: 3, waitMs: 1500 }, { idempotencyKey: id })),
      );
      const parcels = await startParcels(client, world, ["sure1", "sure2"]);
      await Promise.all(old.map((node) => node.kill()));
      world.openGate();
      const fresh = await Promise.all(["n1", "n3"].map((name) => fleet.start(name)));
      await fleet.serving(client, fresh);
      const ended = await Promise.all(orders.map((id) => cluster.ended(client, client.holdfast.key("order", id))));
      await packed(client, parcels);
      const shipped = ended.map(({ snapshot }) => Shipped.parse(snapshot.output).shipped.key);
      expect(new Set(shipped).size).toBe(orders.length);
      const evidence = await cluster.evidence("restarted");
      expect(evidence.contradictions).toEqual([]);
      expect(evidence.actors.filter(({ type }) => type === "item")).toHaveLength(9);
    }));

  test("F2, x01: one idempotency key on two actors is two messages; with other content on the same actor it is refused", () =>
    inNamespace("keys", { on: cluster, leaseTtlMs: SHIPPED }, async ({ fleet }) => {
      const node = await fleet.start("n1");
      await using client = await fleet.client();
      await fleet.serving(client, [node]);
      const { holdfast } = client;
      const [alice, bob] = [holdfast.key("order", "alice"), holdfast.key("order", "bob")];
      for (const id of ["alice", "bob"]) await holdfast.start("order", id, { items: 1, waitMs: 60_000 });
      const ping = { type: "PING" };
      const options = { idempotencyKey: "retry-1" };
      expect(await holdfast.send(alice, ping, options)).toMatchObject({ kind: "applied" });
      expect(await holdfast.send(bob, ping, options)).toMatchObject({ kind: "applied" });
      expect(await holdfast.send(alice, ping, options)).toMatchObject({ kind: "applied" });
      await expect(holdfast.send(alice, { type: "PROGRESS", n: 1 }, options)).rejects.toMatchObject({
        code: "HF-3006",
      });
      for (const key of [alice, bob]) {
        const actor = await holdfast.read.actor(key);
        expect(Pings.parse(actor?.record.snapshot.context).pings).toBe(1);
      }
    }));

  test("I8, F18: when nats-server is killed in the middle, nothing accepted is lost or applied twice, and no node is taken for dead", async () => {
    const own = await Cluster.start();
    try {
      await inNamespace("broker", { on: own, leaseTtlMs: SHIPPED }, async (world) => {
        const { fleet } = world;
        const nodes = await Promise.all(["n1", "n2"].map((name) => fleet.start(name)));
        await using client = await fleet.client();
        await fleet.serving(client, nodes);
        const { holdfast } = client;
        const key = holdfast.key("order", "o1");
        await holdfast.start("order", "o1", { items: 2, waitMs: 4000 }, { idempotencyKey: "o1" });
        const parcels = await startParcels(client, world, ["once1", "once2"]);
        const epochs = async () =>
          new Map((await holdfast.read.fleet()).leases.map(({ partition, epoch }) => [partition, epoch]));
        const epochsBefore = await epochs();
        const ping = (n: number): Promise<unknown> => {
          const options = { idempotencyKey: `ping-${n}`, timeoutMs: 2000 };
          return waitUntil(`ping ${n} is accepted`, () => holdfast.send(key, { type: "PING" }, options));
        };
        const before = Array.from({ length: 8 }, (_, n) => ping(n));
        await before[0];
        await own.nats.kill();
        const during = Array.from({ length: 8 }, (_, n) => ping(8 + n));
        await own.nats.restart();
        await Promise.all([...before, ...during]);
        world.openGate();
        const record = await own.ended(client, key);
        expect(Pings.parse(record.snapshot.context).pings).toBe(16);
        expect(record.snapshot.output).toMatchObject({ shipped: { kind: "ship" } });
        const attempts = await fleet.attempts();
        for (const { key: job } of await packed(client, parcels)) expect(attempts.get(job)).toHaveLength(1);
        expect(await epochs()).toEqual(epochsBefore);
        expect((await own.evidence("broker")).contradictions).toEqual([]);
        expect((await own.figures()).duplicateEffects).toBe(0);
      });
    } finally {
      await own.stop();
    }
  });
});
