import type { Client } from "holdfast";
import { z } from "zod";
import type { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { RollingLoad } from "./rolling-load.ts";

const Till = z.object({ paid: z.number(), sum: z.number() });

export interface RollingJudgement {
  readonly rows: Readonly<Record<string, boolean>>;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Waits until everything has come to its end, then counts: what was answered against what is stored, and what the ledger saw. */
export async function judgeRolling(given: {
  readonly cluster: Cluster;
  readonly client: Client;
  readonly namespace: string;
  readonly load: RollingLoad;
}): Promise<RollingJudgement> {
  const { cluster, client, load } = given;
  const { holdfast } = client;
  const ended = [...load.orders.map((id) => ["order", id] as const), ...load.hauls.map((id) => ["haul", id] as const)];
  const keys = ended.map(([type, id]) => holdfast.key(type, id));
  const headers = await waitUntil(
    "every order and every haul has ended",
    async () => {
      const found = new Map((await holdfast.read.headers()).map((header) => [header.key, header]));
      return keys.every((key) => found.get(key)?.status !== "active" && found.has(key)) ? found : undefined;
    },
    { timeoutMs: 30_000, tickMs: 200, dump: async () => (await holdfast.read.fleet()).stuck },
  );
  let lost = keys.filter((key) => headers.get(key)?.status !== "done").length;
  let doubled = 0;
  const versions = new Set<string>();
  for (const [id, { times, sum }] of load.paid) {
    const actor = await holdfast.read.actor(holdfast.key("till", id));
    const stored = Till.parse(actor?.record.snapshot.context);
    versions.add(actor?.record.machine.version ?? "none");
    lost += Math.max(0, times - stored.paid);
    doubled += Math.max(0, stored.paid - times);
    if (stored.paid === times && stored.sum !== sum) doubled += 1;
  }
  const attempts = new Map<string, { kind: string; nodes: (string | undefined)[] }>();
  for (const line of await cluster.entries()) {
    if (line.line !== "attempt") continue;
    const known = attempts.get(line.idempotencyKey) ?? { kind: line.kind, nodes: [] };
    known.nodes.push(line.node);
    attempts.set(line.idempotencyKey, known);
  }
  const of = (kind: string) => [...attempts.values()].filter((attempt) => attempt.kind === kind);
  const expected = { charge: 2 * load.orders.length, ship: load.orders.length, carry: load.hauls.length };
  for (const [kind, count] of Object.entries(expected)) lost += Math.max(0, count - of(kind).length);
  const repeated = [...attempts.values()].filter(({ nodes }) => nodes.length > 1).length;
  const { kept, ambiguous } = await hauls(client, load.hauls, attempts);
  const { stuck } = await holdfast.read.fleet();
  const unclear = stuck.flatMap(({ reports }) => reports).filter(({ kind }) => kind === "ambiguous").length;
  return {
    rows: {
      noneLost: lost === 0,
      noneDoubled: doubled === 0 && repeated === 0,
      noneAmbiguous: ambiguous + unclear === 0,
      runningJobsStayed: kept > 0,
      everyAnswerApplied: load.unexpected.length === 0,
      oldMachineWhileMixed: versions.size === 1 && versions.has("1"),
    },
    figures: {
      lost,
      duplicated: doubled + repeated,
      ambiguous: ambiguous + unclear,
      orders: load.orders.length,
      hauls: load.hauls.length,
      effects: attempts.size,
      jobsThatOutlastedTheirPartition: kept,
      ...(load.unexpected.length > 0 && { unexpected: load.unexpected.slice(0, 10) }),
    },
  };
}

/** Hauls whose outcome was applied by another node than the one that carried it out, and hauls that nobody knows the end of. */
async function hauls(
  client: Client,
  ids: readonly string[],
  attempts: ReadonlyMap<string, { readonly nodes: readonly (string | undefined)[] }>,
): Promise<{ readonly kept: number; readonly ambiguous: number }> {
  let kept = 0;
  let ambiguous = 0;
  for (const id of ids) {
    const entries = await client.holdfast.read.journal(client.holdfast.key("haul", id));
    const last = entries.at(-1);
    if (JSON.stringify(last?.event ?? {}).includes("HF-3010")) ambiguous += 1;
    const actor = await client.holdfast.read.actor(client.holdfast.key("haul", id));
    const carried = z.object({ node: z.string() }).safeParse(actor?.record.snapshot.output).data?.node;
    if (carried !== undefined && last !== undefined && carried !== last.node) kept += 1;
  }
  return { kept, ambiguous: attempts.size === 0 ? ids.length : ambiguous };
}
