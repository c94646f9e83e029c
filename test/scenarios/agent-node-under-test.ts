/** An agent node whose crash points are lethal. Configured by HOLDFAST_* like any node; its one argument says where it dies. */
import { agentActors } from "@holdfast/node-app";
import { createLogger, parseConfig } from "@holdfast/process";
import type { CrashPoints } from "@holdfast/runtime/ports";
import { startNode } from "holdfast";
import { z } from "zod";

const Plan = z
  .array(z.object({ point: z.string(), match: z.string().default(""), nth: z.int().min(1).default(1) }))
  .min(1);

const config = parseConfig(process.env);
const [...ahead] = Plan.parse(JSON.parse(process.argv[2] ?? "[]"));
let hits = 0;
const crashPoints: CrashPoints = {
  reach: (point, detail) => {
    const next = ahead[0];
    if (next?.point !== point || !detail.includes(next.match)) return;
    hits += 1;
    if (hits < next.nth) return;
    hits = 0;
    ahead.shift();
    if (ahead.length === 0) process.kill(process.pid, "SIGKILL");
  },
};

// A test that dies takes its nodes along.
process.stdin
  .once("end", () => process.exit(1))
  .once("close", () => process.exit(1))
  .resume();
const name = config.HOLDFAST_NODE ?? `n-${process.pid}`;
const telemetry = createLogger({ level: config.HOLDFAST_LOG_LEVEL, node: name });
// Before the start: it may die in the middle of it.
process.stdout.write(`${JSON.stringify({ node: name })}\n`);
await startNode({
  nats: {
    servers: [config.HOLDFAST_NATS_URL ?? ""],
    user: config.HOLDFAST_NATS_USER ?? "",
    password: config.HOLDFAST_NATS_PASSWORD ?? "",
    inboxPrefix: "_INBOX_node",
  },
  namespace: config.HOLDFAST_NAMESPACE,
  name,
  definitions: (context) => agentActors({ config, node: name, telemetry }, context),
  settings: { leaseTtlMs: config.HOLDFAST_LEASE_TTL_MS, sweepMs: config.HOLDFAST_SWEEP_MS },
  telemetry,
  crashPoints,
});
