import { defineAgent, withDelegates } from "@holdfast/agents";
import { SeededRandom } from "@holdfast/runtime/testing";
import type { Client } from "holdfast";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "./agent-fleet.ts";
import { delegationMap, judgeDelegation, type Judgement } from "./delegation-judgement.ts";
import { CHILDREN, CONVERSATION, DelegationStage } from "./delegation-stage.ts";
import { DELEGATION_VARIANTS, type DelegationVariant } from "./delegation-variants.ts";
import { headline, type Scenario, type ScenarioOptions } from "./scenario.ts";

const SHIPPED_TTL_MS = 3000;
const QUICK_TTL_MS = 600;
/** Shorter than the pause between two sweeps (30 s): what only the sweeper finds was forgotten by the takeover. */
const RECOVERY_LIMIT_MS = 25_000;

const blocker = defineAgent({ name: "blocker", model: "blocker" });
const delegator = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);

/**
 * A node dies while a conversation waits for two sub-agents that are held in their model calls.
 * Nothing may be lost, doubled or forgotten: both delegations end once, in the calls that asked for them.
 */
export const delegationRestart: Scenario = {
  name: "delegation-restart",
  variants: Object.keys(DELEGATION_VARIANTS),
  run: async (options) => {
    const rows: Record<string, boolean> = {};
    const leftOut: Record<string, string> = {};
    const variants: Record<string, unknown> = {};
    const cluster = await Cluster.start();
    try {
      for (const [name, variant] of Object.entries(DELEGATION_VARIANTS)) {
        if (options.variant !== undefined && options.variant !== name) {
          leftOut[name] = `only --variant ${options.variant} was asked for`;
          continue;
        }
        const namespace = `v${Object.keys(rows).length + 1}`;
        const { checks, figures } = await play(cluster, namespace, variant, options).catch((error: unknown) =>
          broken(error, options),
        );
        const failed = Object.keys(checks).filter((check) => checks[check] !== true);
        rows[name] = failed.length === 0;
        variants[name] = { ...figures, ...(failed.length > 0 && { failed }) };
        options.say(`  ${name}: ${failed.length === 0 ? "pass" : "FAIL"} ${JSON.stringify(variants[name])}`);
      }
    } finally {
      await cluster.stop();
    }
    return { rows, leftOut, details: { leaseTtlMs: ttlOf(options), variants } };
  },
};

const ttlOf = ({ quick }: ScenarioOptions): number => (quick ? QUICK_TTL_MS : SHIPPED_TTL_MS);

function broken(error: unknown, { say }: ScenarioOptions): Judgement {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return { checks: { completed: false }, figures: { error: headline(error) } };
}

async function play(
  cluster: Cluster,
  namespace: string,
  variant: DelegationVariant,
  options: ScenarioOptions,
): Promise<Judgement> {
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: ttlOf(options) });
  let client: Client | undefined;
  try {
    const nodes = new Map<string, StartedProcess>();
    for (const { name, crash } of variant.nodes) nodes.set(name, await fleet.startNode(name, crash));
    client = await fleet.client();
    const { holdfast } = client;
    const stage = new DelegationStage(fleet, holdfast, new SeededRandom(options.seed), nodes);
    if (nodes.size > 1) await stage.untilShared();
    const input = { agent: delegator, agents: { blocker }, prompt: "Ask both children." };
    await holdfast.start("conversation", CONVERSATION, input, { idempotencyKey: CONVERSATION, timeoutMs: 30_000 });
    await fleet.model.wait({ model: "blocker", state: "blocked", count: CHILDREN.length });
    const before = await delegationMap(holdfast, stage.parent);
    const { atMs, interrupted, finished, facts } = await variant.strike(stage);
    const recoveredMs = (await askedAgainAt(fleet, interrupted, atMs)) - atMs;
    for (const child of CHILDREN) await fleet.model.release(child);
    const judged = await judgeDelegation({ cluster, fleet, holdfast, parent: stage.parent, before, finished });
    return { checks: judged.checks, figures: { recoveredMs, ...judged.figures, ...facts } };
  } finally {
    await client?.close();
    await fleet.stop();
  }
}

/** Waits until the model holds the interrupted children again. @returns when the last of them asked, Unix time in ms */
function askedAgainAt(fleet: AgentFleet, interrupted: readonly string[], sinceMs: number): Promise<number> {
  return waitUntil(
    `${interrupted.join(" and ")} ask their model again`,
    async () => {
      const held = (await fleet.model.requests()).filter(({ blocked, at }) => blocked && at >= sinceMs);
      const times = interrupted.map((child) => held.find(({ lastUser }) => lastUser === child)?.at);
      return times.every((at) => at !== undefined) ? Math.max(...times) : undefined;
    },
    { timeoutMs: RECOVERY_LIMIT_MS, dump: () => fleet.logs().slice(-6000) },
  );
}
