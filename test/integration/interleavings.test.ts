import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "holdfast";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { NodeFleet } from "../harness/node-fleet.ts";
import { waitUntil } from "../harness/wait-until.ts";

const TTL_MS = 600;
const Packed = z.object({ key: z.string(), node: z.string() });
const Pings = z.object({ pings: z.number() });
const Shipped = z.object({ shipped: z.object({ key: z.string() }) });

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(async () => {
  const { duplicateEffects } = await cluster.figures();
  await cluster.stop();
  if (duplicateEffects > 0) throw new Error(`${duplicateEffects} effects happened twice`);
});

/** A fleet of its own namespace. Partitions stay where they are until a node dies or leaves. */
const fleetIn = (namespace: string, on = cluster): NodeFleet =>
  new NodeFleet({
    servers: [on.nats.url],
    user: on.nats.user,
    password: on.nats.password,
    namespace,
    ledgerUrl: on.ledgerUrl,
    runtime: { leaseTtlMs: TTL_MS, movesAtOnce: 0 },
  });

async function inFleet(fleet: NodeFleet, work: (fleet: NodeFleet) => Promise<void>): Promise<void> {
  try {
    await work(fleet);
  } finally {
    await fleet.stop();
  }
}

async function startParcels(client: Client, count: number, kind: "sure" | "once", ms: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${kind}${n}`);
  await Promise.all(ids.map((id) => client.holdfast.start("parcel", id, { kind, ms }, { idempotencyKey: id })));
  return ids.map((id) => client.holdfast.key("parcel", id));
}

/** Waits until all have ended. @returns what their jobs said */
async function packed(client: Client, keys: readonly string[]): Promise<readonly { key: string; node: string }[]> {
  const records = await Promise.all(keys.map((key) => cluster.ended(client, key)));
  return records.map(({ snapshot }) => Packed.parse(snapshot.output));
}

describe.concurrent("interleavings with real processes", () => {
  test("F5, F19: an owner that was stopped past its lease and goes on writes nothing any more, and no effect happens twice", () =>
    inFleet(fleetIn("stopped"), async (fleet) => {
      const first = await fleet.start("n1");
      await using client = await fleet.client();
      await fleet.serving(client, [first]);
      const parcels = await startParcels(client, 4, "sure", 2500);
      const orders = ["o1", "o2"].map((id) => client.holdfast.key("order", id));
      for (const id of ["o1", "o2"])
        await client.holdfast.start("order", id, { items: 2, waitMs: 1500 }, { idempotencyKey: id });
      await waitUntil("jobs run", async () => (await client.holdfast.read.headers("item")).length === 4);
      first.child.kill("SIGSTOP");
      const stoppedAtMs = Date.now();
      const second = await fleet.start("n2");
      await fleet.serving(client, [second]);
      first.child.kill("SIGCONT");
      const results = await packed(client, parcels);
      const ended = await Promise.all(orders.map((key) => cluster.ended(client, key)));
      await waitUntil("the first has noticed", () => first.log().includes("partition.fenced"), {
        dump: () => first.log(),
      });
      for (const { snapshot } of ended) expect(snapshot.output).toMatchObject({ shipped: { kind: "ship" } });
      const evidence = await cluster.evidence("stopped");
      expect(evidence.contradictions).toEqual([]);
      const steps = [...evidence.journals.values()].flat();
      expect(steps.filter(({ node, atMs }) => node === "n1" && atMs > stoppedAtMs + TTL_MS)).toEqual([]);
      // Which attempt's outcome came first is open (F20); it was applied once.
      const outcomes = steps.filter(({ event }) => event.type === "xstate.done.actor.packSure");
      expect(outcomes).toHaveLength(parcels.length);
      const attempts = await fleet.attempts();
      for (const { key } of results) expect(attempts.get(key)).toEqual(["n1", "n2"]);
      expect((await client.holdfast.read.fleet()).leases.map(({ holder }) => holder)).toEqual(
        Array.from({ length: 8 }, () => second.hello["incarnation"]),
      );
    }));

  test("F22: a planned leave under running jobs moves everything at once; the jobs end where they are, none runs twice", () =>
    inFleet(fleetIn("leaving"), async (fleet) => {
      const first = await fleet.start("n1");
      await using client = await fleet.client();
      await fleet.serving(client, [first]);
      const parcels = [
        ...(await startParcels(client, 3, "once", 3000)),
        ...(await startParcels(client, 3, "sure", 3000)),
      ];
      await waitUntil("all jobs run", async () => (await client.holdfast.read.fleet()).nodes[0]?.jobs === 6);
      const second = await fleet.start("n2");
      const leftAtMs = performance.now();
      first.child.kill("SIGTERM");
      await fleet.serving(client, [second]);
      expect(performance.now() - leftAtMs).toBeLessThan(2500); // before the jobs are over
      const results = await packed(client, parcels);
      expect(await first.exited).toEqual({ code: 0, signal: null });
      expect(results.map(({ node }) => node)).toEqual(parcels.map(() => "n1"));
      const attempts = await fleet.attempts();
      for (const { key } of results) expect(attempts.get(key)).toEqual(["n1"]);
      const headers = await client.holdfast.read.headers("parcel");
      expect(headers.map(({ writer }) => writer)).toEqual(parcels.map(() => second.hello["incarnation"]));
    }));

  test("I12: when the whole fleet dies and starts again, everything in flight comes to its end once", () =>
    inFleet(fleetIn("restarted"), async (fleet) => {
      const old = await Promise.all(["n1", "n2"].map((name) => fleet.start(name)));
      await using client = await fleet.client();
      await fleet.serving(client, old);
      const orders = ["o1", "o2", "o3"];
      await Promise.all(
        orders.map((id) => client.holdfast.start("order", id, { items: 3, waitMs: 800 }, { idempotencyKey: id })),
      );
      const parcels = await startParcels(client, 3, "sure", 1500);
      await waitUntil("items are on their way", async () => (await client.holdfast.read.headers("item")).length === 9);
      await Promise.all(old.map((node) => node.kill()));
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
    inFleet(fleetIn("keys"), async (fleet) => {
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
});

test("I8: nothing that was accepted is lost when nats-server is killed in the middle, and nothing is applied twice", async () => {
  const own = await Cluster.start();
  try {
    await inFleet(fleetIn("broker", own), async (fleet) => {
      const nodes = await Promise.all(["n1", "n2"].map((name) => fleet.start(name)));
      await using client = await fleet.client();
      await fleet.serving(client, nodes);
      const { holdfast } = client;
      const parcels = await startParcels(client, 2, "once", 4000);
      const key = holdfast.key("order", "o1");
      await holdfast.start("order", "o1", { items: 2, waitMs: 5000 }, { idempotencyKey: "o1" });
      const ping = async (n: number): Promise<void> => {
        const options = { idempotencyKey: `ping-${n}`, timeoutMs: 2000 };
        await waitUntil(`ping ${n} is accepted`, () => holdfast.send(key, { type: "PING" }, options));
      };
      const before = Array.from({ length: 10 }, (_, n) => ping(n));
      await before[0];
      await own.nats.kill();
      const during = Array.from({ length: 10 }, (_, n) => ping(10 + n));
      await own.nats.restart();
      await Promise.all([...before, ...during]);
      const record = await own.ended(client, key);
      expect(Pings.parse(record.snapshot.context).pings).toBe(20);
      expect(record.snapshot.output).toMatchObject({ shipped: { kind: "ship" } });
      const results = await Promise.all(parcels.map((parcel) => own.ended(client, parcel)));
      for (const { snapshot } of results) Packed.parse(snapshot.output);
      expect((await own.evidence("broker")).contradictions).toEqual([]);
      expect((await own.figures()).duplicateEffects).toBe(0);
      const { leases } = await holdfast.read.fleet();
      expect(leases.map(({ epoch }) => epoch)).toEqual(leases.map(() => 1)); // F18: nobody was taken for dead
    });
  } finally {
    await own.stop();
  }
});
