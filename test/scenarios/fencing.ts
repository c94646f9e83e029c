import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "../harness/cluster.ts";
import { NodeFleet } from "../harness/node-fleet.ts";
import { OUTAGE_CASES, OUTAGE_TTL_MS } from "./brief-outage.ts";
import { FENCING_CASES, type FencingCase } from "./fencing-cases.ts";
import { FencingStage } from "./fencing-stage.ts";
import { headline, type Scenario, type ScenarioOptions } from "./scenario.ts";

/** Short: in every case but one somebody is to be taken for dead. ms */
const TTL_MS = 900;
const QUICK_CASES: readonly string[] = ["before-create", "same-name"];
/** Cases mostly wait for processes and leases. */
const AT_ONCE = 3;
const NAMES = [...Object.keys(FENCING_CASES), ...Object.keys(OUTAGE_CASES)];

/**
 * Owners that are stopped, replaced or cut off, and go on later. Nothing of theirs may be applied once somebody else owns what they own, their
 * jobs are aborted, and they come back as good members of the fleet.
 */
export const fencing: Scenario = {
  name: "fencing",
  variants: NAMES,
  run: async (options) => {
    const { chosen, leftOut } = choose(options);
    const rows: Record<string, boolean> = {};
    const cases: Record<string, unknown> = {};
    await using stack = new AsyncDisposableStack();
    const gates = stack.adopt(mkdtempSync(join(tmpdir(), "holdfast-fencing-")), (path) =>
      rmSync(path, { recursive: true }),
    );
    const cluster = stack.adopt(await Cluster.start(), (started) => started.stop());
    const play = async (name: string, on: Cluster, leaseTtlMs: number, act: FencingCase): Promise<void> => {
      const startedAtMs = performance.now();
      const checks = await onStage(name, on, leaseTtlMs, gates, act).catch((error: unknown) => broken(error, options));
      const failed = Object.keys(checks).filter((check) => checks[check] !== true);
      rows[name] = failed.length === 0;
      const ms = Math.round(performance.now() - startedAtMs);
      cases[name] = { ms, ...(failed.length > 0 && { failed }) };
      options.say(`  ${name}: ${failed.length === 0 ? "pass" : "FAIL"} ${JSON.stringify(cases[name])}`);
    };
    const waiting = Object.entries(FENCING_CASES).filter(([name]) => chosen.has(name));
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        await play(next[0], cluster, TTL_MS, next[1]);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    for (const [name, act] of Object.entries(OUTAGE_CASES)) {
      if (!chosen.has(name)) continue;
      // A server of its own, and nobody else on the machine: here nobody may be taken for dead.
      const own = stack.adopt(await Cluster.start(), (started) => started.stop());
      await play(name, own, OUTAGE_TTL_MS, (stage) => act(stage, own.nats.pid));
    }
    return { rows, leftOut, details: { leaseTtlMs: TTL_MS, cases } };
  },
};

function choose({ quick, variant }: ScenarioOptions) {
  const leftOut: Record<string, string> = {};
  const chosen = new Set<string>();
  for (const name of NAMES) {
    if (variant !== undefined && variant !== name) leftOut[name] = `only --variant ${variant} was asked for`;
    else if (variant === undefined && quick && !QUICK_CASES.includes(name))
      leftOut[name] = "a quick run tries two cases";
    else chosen.add(name);
  }
  return { chosen, leftOut };
}

/** Plays one case in a namespace of its own, then asks what is stored. */
async function onStage(
  name: string,
  cluster: Cluster,
  leaseTtlMs: number,
  gates: string,
  act: FencingCase,
): ReturnType<FencingCase> {
  const namespace = name.replaceAll("-", "").slice(0, 12);
  const fleet = new NodeFleet({
    servers: [cluster.nats.url],
    user: cluster.nats.user,
    password: cluster.nats.password,
    namespace,
    ledgerUrl: cluster.ledgerUrl,
    runtime: { leaseTtlMs },
  });
  await using stage = new FencingStage({ cluster, fleet, namespace, gate: join(gates, name) });
  const checks = await act(stage);
  const { contradictions } = await stage.evidence();
  const { duplicateEffects, lost } = await cluster.figures();
  return {
    ...checks,
    oneContentPerRevision: contradictions.length === 0,
    noEffectTwice: duplicateEffects + lost === 0,
  };
}

function broken(error: unknown, { say }: ScenarioOptions): Readonly<Record<string, boolean>> {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return { [`completed: ${headline(error)}`]: false };
}
