import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLedger } from "@holdfast/ledger";
import type { Client } from "holdfast";
import { NodeFleet } from "../harness/node-fleet.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { Scenario, ScenarioOptions, ScenarioOutcome } from "../scenarios/scenario.ts";
import { ReplicatedServers } from "./replicated-servers.ts";

const NAMESPACE = "r3";
const JOBS = 6;
/** Lease as it is shipped; a failover takes longer than that. ms */
const LEASE_TTL_MS = 3000;
/** How long everybody must have been heard of again before the damage is counted, ms. */
const CALM_MS = 3 * LEASE_TTL_MS;

/**
 * F18, x14b: three servers replicate everything, three nodes run jobs that must not run twice, and the server that leads the bucket of leases
 * is killed. No process of Holdfast died, so nothing may be taken over and no job may be aborted or run again.
 */
export const r3Leader: Scenario = { name: "r3-leader", variants: [], run };

async function run({ say }: ScenarioOptions): Promise<ScenarioOutcome> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.adopt(mkdtempSync(join(tmpdir(), "holdfast-r3-gate-")), (path) =>
    rmSync(path, { recursive: true }),
  );
  const gate = join(folder, "gate");
  const ledger = stack.adopt(await startLedger({ file: join(folder, "ledger.jsonl") }), (started) => started.close());
  const servers = stack.use(await ReplicatedServers.start());
  say("three servers are up");
  const fleet = stack.adopt(
    new NodeFleet({
      servers: servers.urls,
      namespace: NAMESPACE,
      ledgerUrl: ledger.url,
      replicas: 3,
      runtime: { leaseTtlMs: LEASE_TTL_MS },
    }),
    (started) => started.stop(),
  );
  const first = await fleet.start("n1"); // creates the namespace
  const nodes = [first, ...(await Promise.all(["n2", "n3"].map((name) => fleet.start(name))))];
  const client = stack.use(await fleet.client());
  await fleet.serving(client, nodes, 60_000);
  await settled(client);
  const ids = Array.from({ length: JOBS }, (_, n) => `once${n}`);
  await Promise.all(
    ids.map((id) => client.holdfast.start("parcel", id, { kind: "once", gate }, { idempotencyKey: id })),
  );
  await waitUntil("all jobs run", async () => (await fleet.attempts()).size === JOBS, { dump: () => fleet.logs() });
  const before = await epochs(client);

  const killed = await servers.killLeaderOf(`KV_hf_${NAMESPACE}_fleet`);
  const killedAtMs = performance.now();
  say(`killed ${killed}, the leader of the fleet bucket`);
  const outageMs = await heardAgain(client, killedAtMs);
  say(`everybody was heard of again after ${Math.round(outageMs)} ms`);
  const after = await epochs(client);
  const attempts = await fleet.attempts();
  writeFileSync(gate, "");
  const statuses = await Promise.all(ids.map((id) => ended(client, client.holdfast.key("parcel", id))));
  const takeovers = [...after].filter(([partition, epoch]) => before.get(partition) !== epoch).length;
  const fenced = fleet.logs().split("partition.fenced").length - 1;
  return {
    rows: {
      noTakeover: takeovers === 0 && fenced === 0,
      noJobRanTwice: [...attempts.values()].every((tries) => tries.length === 1),
      allJobsEnded: statuses.every((status) => status === "done"),
    },
    leftOut:
      outageMs > LEASE_TTL_MS
        ? {}
        : { outlastsTheLease: `the failover took ${Math.round(outageMs)} ms, less than a lease` },
    details: { killed, outageMs: Math.round(outageMs), takeovers, fenced, jobs: JOBS },
  };
}

async function epochs(client: Client): Promise<ReadonlyMap<string, number>> {
  const { leases } = await client.holdfast.read.fleet();
  return new Map(leases.map(({ partition, epoch }) => [partition, epoch]));
}

/** Waits until nodes that have just started have shared the partitions out. */
async function settled(client: Client): Promise<void> {
  let last = "";
  let since = performance.now();
  await waitUntil(
    "the partitions are shared out",
    async () => {
      const now = JSON.stringify([...(await epochs(client))]);
      if (now !== last) since = performance.now();
      last = now;
      return performance.now() - since > CALM_MS;
    },
    { timeoutMs: 60_000, tickMs: 250 },
  );
}

/** Waits until every node was heard of, and then for some time more. @returns how long the first heartbeats took, ms */
async function heardAgain(client: Client, sinceMs: number): Promise<number> {
  const killedAtMs = Date.now();
  let heardAtMs: number | undefined;
  await waitUntil(
    "every node is heard of again, for a while",
    async () => {
      const { nodes } = await client.holdfast.read.fleet();
      if (!nodes.every(({ storedAtMs }) => storedAtMs > killedAtMs + 100)) return false;
      heardAtMs ??= performance.now();
      return performance.now() - heardAtMs > CALM_MS;
    },
    { timeoutMs: 90_000, tickMs: 250 },
  );
  return (heardAtMs ?? sinceMs) - sinceMs;
}

async function ended(client: Client, key: string): Promise<string> {
  return waitUntil(`${key} has ended`, async () => {
    const actor = await client.holdfast.read.actor(key);
    return actor !== undefined && actor.record.status !== "active"
      ? actor.record.snapshot.value === "packed"
        ? "done"
        : "lost"
      : undefined;
  });
}
