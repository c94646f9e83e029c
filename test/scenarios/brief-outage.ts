import { setTimeout as pause } from "node:timers/promises";
import { waitUntil } from "../harness/wait-until.ts";
import type { FencingStage } from "./fencing-stage.ts";

const NODES = ["n1", "n2", "n3"] as const;
const JOBS = 6;
/** How long the server does nothing, ms: a failover of replicated servers takes 4 to 8 s. */
const OUTAGE_MS = 8000;
/** Leases as they are shipped. ms */
export const OUTAGE_TTL_MS = 3000;
/** Nobody may have moved for this long before the outage, and nobody may move for this long after everybody was heard of again. ms */
const CALM_MS = 2500;
const AFTERMATH_MS = 2 * OUTAGE_TTL_MS;

/** A case in which the server is disturbed. @param server  process id of the one that this stage has for itself */
type OutageCase = (stage: FencingStage, server: number) => Promise<Readonly<Record<string, boolean>>>;

export const OUTAGE_CASES: Readonly<Record<string, OutageCase>> = {
  /**
   * F18: the only server stands still for longer than a lease, while jobs run that must not run twice. No process of Holdfast died, so nothing
   * may be taken over and no job may be aborted or run again.
   */
  "brief-outage": async (stage, server) => briefOutage(stage, server),
};

async function briefOutage(stage: FencingStage, server: number): Promise<Readonly<Record<string, boolean>>> {
  const first = await stage.alone("n1");
  await Promise.all(NODES.slice(1).map((name) => stage.fleet.start(name)));
  await calm(stage);
  const shared = (await stage.holders()).size;
  const parcels = await Promise.all(Array.from({ length: JOBS }, (_, n) => stage.packing(`once${n}`, "once")));
  const before = await stage.epochs();
  process.kill(server, "SIGSTOP");
  try {
    await pause(OUTAGE_MS);
  } finally {
    process.kill(server, "SIGCONT");
  }
  const continuedAtMs = Date.now();
  let heardAtMs: number | undefined;
  await waitUntil(
    "every node is heard of again, for a while",
    async () => {
      const { nodes } = await stage.client.holdfast.read.fleet();
      // Nothing was stored while the server stood still, so what came since is later than that.
      if (nodes.length < NODES.length || !nodes.every(({ storedAtMs }) => storedAtMs > continuedAtMs)) return false;
      heardAtMs ??= performance.now();
      return performance.now() - heardAtMs > AFTERMATH_MS;
    },
    { timeoutMs: 45_000, tickMs: 250, dump: () => first.log().slice(-4000) },
  );
  const after = await stage.epochs();
  const attempts = await Promise.all(parcels.map((parcel) => stage.attemptsOf(parcel)));
  stage.openGate();
  const packers = await Promise.all(parcels.map((parcel) => stage.packedBy(parcel)));
  return {
    allNodesOwned: shared === NODES.length,
    noTakeover: JSON.stringify([...after]) === JSON.stringify([...before]),
    noJobAborted: stage.aborted().length === 0,
    noJobRanTwice: attempts.every((nodes) => nodes.length === 1),
    outcomesOfTheirRunners: packers.every((node, index) => node === attempts[index]?.[0]),
  };
}

/** Waits until nodes that have just started have shared the partitions out. */
async function calm(stage: FencingStage): Promise<void> {
  let last = "";
  let since = performance.now();
  await waitUntil(
    "the partitions are shared out",
    async () => {
      const now = JSON.stringify([[...(await stage.epochs())], (await stage.holders()).size]);
      if (now !== last) since = performance.now();
      last = now;
      return (await stage.holders()).size === NODES.length && performance.now() - since > CALM_MS;
    },
    { timeoutMs: 45_000, tickMs: 250 },
  );
}
