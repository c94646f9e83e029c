import { SeededRandom } from "@holdfast/runtime/testing";
import type { Client } from "holdfast";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { RollingFleet, type Build } from "./rolling-fleet.ts";
import { judgeRolling } from "./rolling-judgement.ts";
import { percentile, RollingLoad } from "./rolling-load.ts";
import type { Scenario, ScenarioOptions, ScenarioOutcome } from "./scenario.ts";

const NAMES = ["node-a", "node-b", "node-c"] as const;
const NAMESPACE = "rolling";
const HAUL_MS = 1200;
/** Slowest answer of a thousand, ms. */
const P999_LIMIT_MS = 1000;

/** How much of it: the whole story, or a smoke test of seconds. */
const sizeOf = ({ quick }: ScenarioOptions) =>
  quick
    ? { rounds: 1, leaseTtlMs: 1500, tills: 8, payers: 2, hauls: 1 }
    : { rounds: 10, leaseTtlMs: 3000, tills: 48, payers: 6, hauls: 3 };

/** Neighbours never run the same build for long, and the three never all run the second. */
const buildOf = (round: number, index: number): Build => ((round + index) % 2 === 0 ? "first" : "second");

/**
 * Three nodes are restarted one after the other, again and again, while people wait for answers. Two builds with different machine versions run
 * side by side all the time. Nothing may be lost, doubled or ambiguous, and nobody may wait long.
 */
export const rollingRestart: Scenario = {
  name: "rolling-restart",
  variants: [],
  run: async (options) => {
    const cluster = await Cluster.start();
    try {
      return await roll(cluster, options);
    } finally {
      await cluster.stop();
    }
  },
};

async function roll(cluster: Cluster, options: ScenarioOptions): Promise<ScenarioOutcome> {
  const size = sizeOf(options);
  const fleet = new RollingFleet(cluster, NAMESPACE, size.leaseTtlMs);
  let client: Client | undefined;
  let load: RollingLoad | undefined;
  try {
    await Promise.all(NAMES.map((name, index) => fleet.start(name, buildOf(0, index))));
    client = await cluster.client(NAMESPACE);
    const { holdfast } = client;
    await fleet.balanced(client);
    const random = new SeededRandom(options.seed);
    load = new RollingLoad({ holdfast, random, ...size, thinkMs: 20, orderEveryMs: 250 });
    await load.start();
    const leaveMs: number[] = [];
    const startedAtMs = performance.now();
    for (let round = 1; round <= size.rounds; round += 1) {
      for (const [index, name] of NAMES.entries()) {
        await load.haul(size.hauls, HAUL_MS);
        leaveMs.push(await fleet.leave(name));
        await fleet.start(name, buildOf(round, index));
        await fleet.balanced(client);
      }
      const worst = percentile(
        load.measured.map(({ ms }) => ms),
        1,
      );
      options.say(`  round ${round}: ${load.measured.length} requests, slowest ${Math.round(worst)} ms`);
    }
    const rollingMs = performance.now() - startedAtMs;
    await load.stop();
    const handovers = fleet.handovers();
    const mixed = await judgeRolling({ cluster, client, namespace: NAMESPACE, load });
    const versions = await newestFirst(fleet, client);
    const waits = load.measured.map(({ ms }) => ms);
    const p999Ms = Math.round(percentile(waits, 0.999));
    const gaps = handovers.map(({ ms }) => ms);
    return {
      rows: {
        ...mixed.rows,
        handedOverWithoutLeaseTime: gaps.length > 0 && Math.max(...gaps) < size.leaseTtlMs,
        answersInTime: p999Ms <= P999_LIMIT_MS,
        newMachineOnceAllRead: versions === "2",
      },
      leftOut: {
        newRecordFormat: "there is only record format 1; the second build says it reads 2, and nobody may write it",
      },
      details: {
        ...mixed.figures,
        restarts: leaveMs.length,
        rollingMs: Math.round(rollingMs),
        requests: waits.length,
        latencyMs: {
          p50: Math.round(percentile(waits, 0.5)),
          p99: Math.round(percentile(waits, 0.99)),
          p999: p999Ms,
          max: Math.round(percentile(waits, 1)),
        },
        leaveMs: { p50: Math.round(percentile(leaveMs, 0.5)), max: Math.round(percentile(leaveMs, 1)) },
        handoverMs: {
          moves: gaps.length,
          p50: Math.round(percentile(gaps, 0.5)),
          max: Math.round(percentile(gaps, 1)),
        },
      },
    };
  } catch (error) {
    options.say(fleet.logs().slice(-6000));
    throw error;
  } finally {
    load?.cancel();
    await client?.close();
    await fleet.stop();
  }
}

/** Lets every node run the second build, then begins a till. @returns the version of its machine */
async function newestFirst(fleet: RollingFleet, client: Client): Promise<string> {
  for (const name of NAMES) {
    await fleet.leave(name);
    await fleet.start(name, "second");
  }
  await fleet.balanced(client);
  await client.holdfast.start("till", "new", undefined, { timeoutMs: 30_000 });
  const key = client.holdfast.key("till", "new");
  const actor = await waitUntil("the new till is stored", () => client.holdfast.read.actor(key));
  return actor.record.machine.version;
}
