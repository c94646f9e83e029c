import {
  check,
  collectEvidence,
  type AcceptedCommand,
  type CheckEvidence,
  type CheckOptions,
  type Verdict,
} from "@holdfast/audit";
import { agentDefinitions } from "@holdfast/node-app";
import { inboxPrefixOf } from "@holdfast/process";
import { compileActors, replayJudge } from "holdfast";
import { setTimeout as pause } from "node:timers/promises";
import { orderActors } from "../harness/order-actors.ts";
import type { ChaosWorld } from "./chaos-world.ts";

export interface JudgeOptions extends Pick<CheckOptions, "mayRest"> {
  readonly accepted: readonly AcceptedCommand[];
  /** How long it may take until nothing is left to do, ms. */
  readonly settleMs: number;
}

/** What came out, and whether everything had come to rest by itself before it was judged. */
export interface Judged {
  readonly verdict: Verdict;
  readonly cameToRest: boolean;
}

const LOOK_MS = 1000;
/** A timer that is later than this counts as overdue. ms */
const TIMER_GRACE_MS = 1500;

/**
 * Waits until no record needs work, then asks the checker: by what is stored, told and counted alone.
 * Cursors are stored a little later than records, so what only waits may be judged again until the time is over.
 */
export async function judgeWorld(world: ChaosWorld, { accepted, settleMs, mayRest }: JudgeOptions): Promise<Judged> {
  const deadline = performance.now() + settleMs;
  const isAtRest = (): boolean => [...world.headers.values()].every(({ needsWork }) => !needsWork);
  const cameToRest = await world.until("nobody has anything left to do", isAtRest, settleMs).then(
    () => true,
    () => false,
  );
  for (;;) {
    const verdict = await judge(world, accepted, mayRest);
    const mayStillMove = Object.entries(verdict.rows).every(([claim, holds]) => holds || claim === "nothingStuck");
    if (verdict.pass || !cameToRest || !mayStillMove || performance.now() > deadline) return { verdict, cameToRest };
    await pause(LOOK_MS);
  }
}

/** Nodes at rest still sweep, and every sweep leaves a barrier: evidence is read while none of them runs. */
async function standingStill<T>(world: ChaosWorld, read: () => Promise<T>): Promise<T> {
  const nodes = [...world.nodes.values()];
  await Promise.all(nodes.map((node) => node.freeze()));
  try {
    return await read();
  } finally {
    for (const node of nodes) node.thaw();
  }
}

async function collect(world: ChaosWorld, accepted: readonly AcceptedCommand[]): Promise<CheckEvidence> {
  const { url, user, password } = world.cluster.nats;
  return collectEvidence({
    servers: [url],
    user,
    password,
    inboxPrefix: inboxPrefixOf("node"),
    namespace: world.namespace,
    accepted,
    ledger: await world.ledgerLines(),
  });
}

async function judge(
  world: ChaosWorld,
  accepted: readonly AcceptedCommand[],
  mayRest: CheckOptions["mayRest"],
): Promise<Verdict> {
  const evidence = await standingStill(world, () => collect(world, accepted));
  const machines = compileActors([...agentDefinitions(), ...orderActors("")]);
  const replay = replayJudge({ machines, scheme: world.client.holdfast.manifest });
  return check(evidence, { replay, timerGraceMs: TIMER_GRACE_MS, ...(mayRest !== undefined && { mayRest }) });
}
