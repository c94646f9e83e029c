import { SeededRandom } from "@holdfast/runtime/testing";
import { startSimModel } from "@holdfast/sim-model";
import { setTimeout as pause } from "node:timers/promises";
import { Cluster } from "../harness/cluster.ts";
import { headline, type ScenarioOutcome } from "../scenarios/scenario.ts";
import { ChaosWorld, typeOf } from "./chaos-world.ts";
import { judgeWorld } from "./judge-world.ts";
import { MISFORTUNE_KINDS, MISFORTUNES, NODES, shuffled, type MisfortuneKind } from "./misfortunes.ts";
import { ToldCommands } from "./told-commands.ts";
import { runWorkload } from "./workload.ts";
import { WORKLOAD_SCRIPTS } from "./workload-models.ts";

export interface MixedChaosOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

/** Per minute: what a run must have shown to have shown anything. */
const CONVERSATIONS_PER_MINUTE = 200;
const MISFORTUNES_PER_MINUTE = 4;
const EACH_KIND_PER_MINUTE = 0.3;
/** A shorter run says nothing about how much there is per minute. */
const TELLING_MINUTES = 1;

const TTL_MS = 2000;
const PACE = { atOnce: 24, perSecond: 7 };
/** Between two misfortunes: long enough that most of them meet a fleet at work. ms */
const BREATH_MS = { least: 300, more: 1500 };
const FINISH_MS = 100_000;
const SETTLE_MS = 60_000;

/**
 * Conversations, delegations, questions, timers and interruptions on three nodes, under seeded misfortune. When it is over, everything must come
 * to rest by itself, and a checker that knows only what is stored, told and counted must find nothing.
 */
export async function mixedChaos({ minutes, seed, say }: MixedChaosOptions): Promise<ScenarioOutcome> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.adopt(await Cluster.start(), (started) => started.stop());
  const model = stack.adopt(await startSimModel({ scripts: WORKLOAD_SCRIPTS }), (started) => started.close());
  const world = stack.use(
    new ChaosWorld({ cluster, namespace: "chaos", leaseTtlMs: TTL_MS, modelBaseUrl: `${model.url}/v1` }),
  );
  for (const name of NODES) await world.start(name);
  await world.serving();

  const [stop, giveUp] = [new AbortController(), new AbortController()];
  stack.defer(() => {
    stop.abort();
    giveUp.abort(); // whoever still asks would ask for ever
  });
  const told = new ToldCommands(() => world.client, giveUp.signal);
  const workload = runWorkload({
    world,
    told,
    random: new SeededRandom(`workload ${seed}`),
    ...PACE,
    stop: stop.signal,
    giveUp: giveUp.signal,
  });
  const endMs = performance.now() + minutes * 60_000;
  const struck = await strike(world, new SeededRandom(`misfortunes ${seed}`), endMs, say);
  stop.abort();
  say("the misfortunes are over; what is under way comes to its end");
  const timer = setTimeout(() => giveUp.abort(new Error("it was given up")), FINISH_MS);
  const { done, unfinished } = await workload.finally(() => clearTimeout(timer));
  for (const flow of unfinished) say(`  not finished: ${flow}`);
  await world.serving();
  const { verdict, cameToRest } = await judgeWorld(world, {
    accepted: told.accepted,
    settleMs: SETTLE_MS,
    // Conversations wait for their users; nothing else may wait for nothing.
    mayRest: ({ type }) => type === "conversation",
  });
  for (const finding of verdict.findings.slice(0, 50)) say(`  ${JSON.stringify(finding)}`);
  if (!verdict.pass || !cameToRest) say(world.logs().slice(-20_000));

  const headers = [...world.headers.values()];
  const conversations = headers.filter((header) => typeOf(header) === "conversation");
  const roots = conversations.filter(({ list }) => list["task"] === undefined).length;
  const counts = Object.values(struck.counts);
  const strikes = counts.reduce((sum, count) => sum + count, 0);
  const enough = {
    enoughConversations: roots >= CONVERSATIONS_PER_MINUTE * minutes,
    enoughMisfortunes: strikes >= MISFORTUNES_PER_MINUTE * minutes,
    eachKindOften: counts.every((count) => count >= Math.floor(EACH_KIND_PER_MINUTE * minutes)),
  };
  return {
    rows: {
      ...verdict.rows,
      cameToRest,
      everyFlowEnded: unfinished.length === 0,
      misfortunesAsExpected: struck.unexpected.length === 0,
      ...(minutes < TELLING_MINUTES ? { ranAtAll: roots > 0 && strikes > 0 } : enough),
    },
    leftOut: {
      ...verdict.leftOut,
      ...(minutes < TELLING_MINUTES && { enough: `less than ${TELLING_MINUTES} min: figures per minute say nothing` }),
    },
    details: {
      minutes,
      conversations: roots,
      conversationsOfTasks: conversations.length - roots,
      flows: done,
      misfortunes: struck.counts,
      unexpected: struck.unexpected,
      findings: verdict.findings.length,
      figures: verdict.figures,
    },
  };
}

const NONE_YET: Readonly<Record<MisfortuneKind, number>> = {
  kill: 0,
  "kill-at-point": 0,
  "kill-twice": 0,
  freeze: 0,
  "freeze-at-point": 0,
  drain: 0,
  "server-kill": 0,
  "server-freeze": 0,
  replay: 0,
  "same-name": 0,
};

interface Strikes {
  readonly counts: Record<MisfortuneKind, number>;
  readonly unexpected: readonly string[];
}

/** One misfortune after the other, every kind before any comes again, until the time is over. */
async function strike(
  world: ChaosWorld,
  random: SeededRandom,
  endMs: number,
  say: (line: string) => void,
): Promise<Strikes> {
  const counts: Record<MisfortuneKind, number> = { ...NONE_YET };
  const unexpected: string[] = [];
  const startedAtMs = performance.now();
  while (performance.now() < endMs) {
    for (const kind of shuffled(random, MISFORTUNE_KINDS)) {
      await pause(BREATH_MS.least + random.below(BREATH_MS.more));
      if (performance.now() >= endMs) break;
      const { what, isAsExpected } = await MISFORTUNES[kind](world, random).catch((error: unknown) => ({
        what: `broke off: ${headline(error)}`,
        isAsExpected: false,
      }));
      counts[kind] += 1;
      if (!isAsExpected) unexpected.push(`${kind} ${what}`);
      const atS = ((performance.now() - startedAtMs) / 1000).toFixed(1);
      say(`  ${atS} s ${kind} ${what}${isAsExpected ? "" : " UNEXPECTED"}; ${world.headers.size} actors`);
      for (const name of NODES) if (!world.nodes.has(name)) await revive(world, name, unexpected, say);
    }
  }
  return { counts, unexpected };
}

/** A node that ended without having been killed. */
async function revive(
  world: ChaosWorld,
  name: string,
  unexpected: string[],
  say: (line: string) => void,
): Promise<void> {
  unexpected.push(`${name} had ended`);
  say(`  ${name} had ended UNEXPECTED, ${world.lastWords.get(name) ?? "without a word"}`);
  await world.start(name);
}
