import { boundHeap, createLogger, untilSignalled, type Config } from "@holdfast/process";
import { PLANNED_EXIT_CODE, RuntimeFault } from "@holdfast/protocol";
import { startNode } from "holdfast";
import { agentActors } from "./agent-actors.ts";

export interface RunNodeOptions {
  readonly config: Config;
  /** End when standard input closes: for a parent that must not leave us behind. */
  readonly tied: boolean;
}

const HOUR_MS = 3_600_000;

/** Runs one agent node until it is told to leave. */
export async function runNode({ config, tied }: RunNodeOptions): Promise<void> {
  if (tied)
    process.stdin
      .once("end", () => process.exit(1))
      .once("close", () => process.exit(1))
      .resume();
  boundHeap(config.HOLDFAST_MEMORY_MB);
  const signals = untilSignalled();
  if (config.HOLDFAST_NATS_URL === undefined) {
    throw new RuntimeFault(
      "HF-7001",
      "HOLDFAST_NATS_URL: an agent node needs a NATS server. Set it, or use npm start, which brings one.",
    );
  }
  const name = config.HOLDFAST_NODE ?? `n-${process.pid}`;
  const telemetry = createLogger({ level: config.HOLDFAST_LOG_LEVEL, node: name });
  const node = await startNode({
    nats: {
      servers: [config.HOLDFAST_NATS_URL],
      inboxPrefix: "_INBOX_node",
      ...(config.HOLDFAST_NATS_USER !== undefined && { user: config.HOLDFAST_NATS_USER }),
      ...(config.HOLDFAST_NATS_PASSWORD !== undefined && { password: config.HOLDFAST_NATS_PASSWORD }),
    },
    namespace: config.HOLDFAST_NAMESPACE,
    name,
    pools: config.HOLDFAST_POOLS,
    weight: config.HOLDFAST_WEIGHT,
    ...(config.HOLDFAST_BUILD !== undefined && { build: config.HOLDFAST_BUILD }),
    definitions: (context) => agentActors({ config, node: name, telemetry }, context),
    settings: {
      leaseTtlMs: config.HOLDFAST_LEASE_TTL_MS,
      sweepMs: config.HOLDFAST_SWEEP_MS,
      drainGraceMs: config.HOLDFAST_DRAIN_GRACE_MS,
      memoryMb: config.HOLDFAST_MEMORY_MB,
      stepConcurrency: config.HOLDFAST_STEP_CONCURRENCY,
      nodeJobConcurrency: config.HOLDFAST_JOB_CONCURRENCY,
      providerConcurrency: config.HOLDFAST_PROVIDER_CONCURRENCY ?? {},
      roles: config.HOLDFAST_ROLES ?? {},
      busyFrom: config.HOLDFAST_BUSY_FROM,
      keepHeldMs: config.HOLDFAST_KEEP_HELD_HOURS * HOUR_MS,
      keepEndedMs: config.HOLDFAST_KEEP_ENDED_HOURS * HOUR_MS,
      keepTombstoneMs: config.HOLDFAST_KEEP_TOMBSTONES_HOURS * HOUR_MS,
      maxAttempts: config.HOLDFAST_MAX_ATTEMPTS,
    },
    process: { exitProof: config.HOLDFAST_EXIT_PROOF, successorToken: config.HOLDFAST_RESTART_TOKEN },
    telemetry,
  });
  process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
  const signalled = signals.first.then((signal) => ({ kind: "signalled", signal }) as const);
  const ending = await Promise.race([signalled, node.ending]);
  if (ending.kind === "replaced") throw ending.fault;
  if (ending.kind === "signalled") telemetry.info("node.signalled", { signal: ending.signal });
  const exitCode = ending.kind === "restartAsked" ? PLANNED_EXIT_CODE : 0;
  signals.now.addEventListener("abort", () => void node.stop().then(() => process.exit(exitCode)), { once: true });
  await node.drain();
  process.exit(exitCode);
}
