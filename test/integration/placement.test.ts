import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import type { FleetOverview } from "@holdfast/client";
import { inboxPrefixOf } from "@holdfast/process";
import { poolOf, rendezvousOwner } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

const TTL_MS = 600;
const FleetJson = z.looseObject({
  nodes: z.array(
    z.looseObject({ name: z.string(), state: z.string(), weight: z.number(), pools: z.array(z.string()) }),
  ),
  partitions: z.array(z.looseObject({ partition: z.string(), owner: z.string().optional(), lag: z.number() })),
  unowned: z.array(z.string()),
});

let cluster: Cluster;
let client: Client;
let gates: string;
const nodes = new Map<
  string,
  { readonly process: StartedProcess; readonly pools: readonly string[]; readonly weight: number }
>();

async function start(name: string, given: { pools?: string[]; weight?: number; types?: string[] } = {}): Promise<void> {
  const { pools = ["d"], weight = 1, types = ["order"] } = given;
  const settings = {
    nats: { servers: [cluster.nats.url], user: cluster.nats.user, password: cluster.nats.password },
    namespace: "main",
    name,
    ledgerUrl: cluster.ledgerUrl,
    pools,
    weight,
    types,
    runtime: { leaseTtlMs: TTL_MS },
  };
  const file = join(import.meta.dirname, "../harness/placed-node-under-test.ts");
  nodes.set(name, { process: await startProcess(file, [JSON.stringify(settings)]), pools, weight });
}

async function end(name: string, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  const node = nodes.get(name);
  nodes.delete(name);
  await node?.process.kill(signal);
}

/** Who owns what, as soon as it is as rendezvous hashing has it for these nodes. */
function balanced(types: ReadonlyMap<string, readonly string[]> = new Map()): Promise<FleetOverview> {
  return waitUntil(
    `the partitions are where they belong with ${[...nodes.keys()].join(", ")}`,
    async () => {
      const overview = await client.holdfast.read.overview();
      const isPlaced = overview.partitions.every(({ partition, owner }) => {
        const able = [...nodes].filter(
          ([name, { pools }]) => pools.includes(poolOf(partition)) && (types.get(partition)?.includes(name) ?? true),
        );
        return (
          owner ===
          rendezvousOwner(
            partition,
            able.map(([name, { weight }]) => ({ name, weight })),
          )
        );
      });
      return isPlaced ? overview : undefined;
    },
    { timeoutMs: 30_000, dump: () => [...nodes].map(([, { process }]) => process.log().slice(-3000)) },
  );
}

/** Partitions that somebody claimed between two looks, and how often. */
function movedBetween(before: FleetOverview, after: FleetOverview): Readonly<Record<string, number>> {
  const epochs = new Map(before.partitions.map(({ partition, epoch }) => [partition, epoch]));
  const moved = after.partitions.map(
    ({ partition, epoch }) => [partition, epoch - (epochs.get(partition) ?? 0)] as const,
  );
  return Object.fromEntries(moved.filter(([, times]) => times !== 0));
}

/** The moves that cannot be avoided: each partition whose owner is another one, once. */
function necessary(before: FleetOverview, after: FleetOverview): Readonly<Record<string, number>> {
  const owners = new Map(before.partitions.map(({ partition, owner }) => [partition, owner]));
  return Object.fromEntries(
    after.partitions
      .filter(({ partition, owner }) => owners.get(partition) !== owner)
      .map(({ partition }) => [partition, 1]),
  );
}

beforeAll(async () => {
  cluster = await Cluster.start();
  gates = await mkdtemp(join(tmpdir(), "holdfast-gates-"));
  await Promise.all([start("a"), start("b", { weight: 2 })]);
  client = await cluster.client("main");
});

afterAll(async () => {
  await Promise.all([...nodes.keys()].map((name) => end(name, "SIGKILL")));
  await client.close();
  await cluster.stop();
  await rm(gates, { recursive: true, force: true });
});

describe("partitions of real nodes", () => {
  test("nodes join, leave and die: only what has to move moves, once", async () => {
    const two = await balanced();
    await start("c");
    const three = await balanced();
    expect(Object.keys(movedBetween(two, three)).length).toBeGreaterThan(0);
    expect(movedBetween(two, three)).toEqual(necessary(two, three));
    await end("c", "SIGTERM");
    const again = await balanced();
    expect(movedBetween(three, again)).toEqual(necessary(three, again));
    await end("b", "SIGKILL");
    const one = await balanced();
    expect(movedBetween(again, one)).toEqual(necessary(again, one));
    await start("b", { weight: 2 });
    const back = await balanced();
    expect(movedBetween(one, back)).toEqual(necessary(one, back));
    expect(new Map(back.partitions.map((p) => [p.partition, p.owner]))).toEqual(
      new Map(two.partitions.map((p) => [p.partition, p.owner])),
    );
  });

  test("a task type whose pool no node serves is reported, waits, and starts on the node that joins", async () => {
    const key = client.holdfast.key("order", "far");
    await client.holdfast.start("order", "far", { items: 3 });
    const alarm = await waitUntil("it is reported", async () => {
      const overview = await client.holdfast.read.overview();
      const said = overview.stuck.flatMap(({ reports }) => reports).find(({ kind }) => kind === "unowned");
      return said === undefined ? undefined : { said, overview };
    });
    expect(alarm.said).toEqual({ key: "far-*", kind: "unowned", why: "no live node serves pool far" });
    expect(await client.holdfast.stuck.list()).toContainEqual(expect.objectContaining(alarm.said));
    const far = alarm.overview.partitions.filter(({ partition }) => poolOf(partition) === "far");
    expect(far.every(({ owner }) => owner === undefined)).toBe(true);
    expect(far.reduce((sum, { lag }) => sum + (lag ?? 0), 0)).toBe(3);
    const env = {
      HOLDFAST_NATS_URL: cluster.nats.url,
      HOLDFAST_NATS_USER: cluster.nats.user,
      HOLDFAST_NATS_PASSWORD: cluster.nats.password,
    };
    const said = await runCommand(["fleet"], { env });
    expect(said.stdout).toContain("ALARM: nobody owns 32 partitions of pool far; 3 messages wait there");
    expect(said.code).toBe(0);

    await start("far", { pools: ["far"], types: ["item"], weight: 0.5 });
    const order = await cluster.ended(client, key);
    expect(order.status).toBe("done");
    const overview = await balanced();
    expect(overview.unowned).toEqual([]);
    const charges = (await cluster.entries()).filter((entry) => entry.line === "attempt" && entry.kind === "charge");
    expect(charges.map((entry) => "node" in entry && entry.node)).toEqual(["far", "far", "far"]);
    await waitUntil("the alarm is over", async () => {
      const { stuck } = await client.holdfast.read.fleet();
      return stuck.every(({ reports }) => reports.every(({ kind }) => kind !== "unowned"));
    });
    const json = FleetJson.parse((await runCommand(["fleet", "--json"], { env })).json);
    expect(json.unowned).toEqual([]);
    expect(json.nodes.filter(({ state }) => state === "serving").map(({ name, weight }) => [name, weight])).toEqual([
      ["a", 1],
      ["b", 2],
      ["far", 0.5],
    ]);
    expect(
      new Set(json.partitions.filter(({ partition }) => poolOf(partition) === "d").map(({ owner }) => owner)),
    ).toEqual(new Set(["a", "b"]));
  });

  test("a type that no node of its pool serves waits, too, and its partition moves to the first that does", async () => {
    const gate = join(gates, "parcel");
    writeFileSync(gate, "");
    const key = client.holdfast.key("parcel", "p1");
    const before = await balanced();
    const sent = client.holdfast.start("parcel", "p1", { kind: "sure", gate }, { timeoutMs: 20_000 });
    await waitUntil("it is reported", async () => {
      const { stuck } = await client.holdfast.read.fleet();
      return stuck.flatMap(({ reports }) => reports).some((report) => report.key === key && report.kind === "unserved");
    });
    await start("parcels", { types: ["order", "parcel"], weight: 0.01 });
    expect(await sent).toMatchObject({ kind: "applied" });
    const partition = key.split(".")[0] ?? "";
    const after = await balanced(new Map([[partition, ["parcels"]]]));
    expect(movedBetween(before, after)).toEqual({ ...necessary(before, after), [partition]: 1 });
  });

  test("the operator sees the fleet with no more rights than to read", async () => {
    const { user, password } = cluster.nats.credentials("operator");
    await using operator = await createClient({
      nats: { servers: [cluster.nats.url], user, password, inboxPrefix: inboxPrefixOf("operator") },
      namespace: "main",
      principal: { kind: "person", id: "local", roles: [] },
    });
    const { partitions, unowned } = await operator.holdfast.read.overview();
    expect(partitions).toHaveLength(12 + 32);
    expect(unowned).toEqual([]);
  });
});
