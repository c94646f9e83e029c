/** An agent node whose crash points are lethal. Configured by HOLDFAST_* like any node; its one argument says where it dies, lines on its
 * standard input say so later; it answers each with a line. */
import { createInterface } from "node:readline";
import { agentActors } from "@holdfast/node-app";
import { createLogger, parseConfig } from "@holdfast/process";
import { startNode } from "holdfast";
import { z } from "zod";
import { FaultPoints, FaultStep } from "../harness/fault-points.ts";

const Plan = z.array(FaultStep.omit({ act: true }));

const config = parseConfig(process.env);
const crashPoints = new FaultPoints();
const plan = Plan.parse(JSON.parse(process.argv[2] ?? "[]"));
crashPoints.arm(plan.map((step, index) => ({ ...step, act: index + 1 < plan.length ? "pass" : "kill" })));

// A test that dies takes its nodes along.
process.stdin.once("end", () => process.exit(1)).once("close", () => process.exit(1));
createInterface({ input: process.stdin }).on("line", (line) => {
  crashPoints.tell(line);
  process.stdout.write(`${JSON.stringify({ armed: true })}\n`);
});
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
  settings: {
    leaseTtlMs: config.HOLDFAST_LEASE_TTL_MS,
    sweepMs: config.HOLDFAST_SWEEP_MS,
    roles: config.HOLDFAST_ROLES ?? {},
  },
  telemetry,
  crashPoints,
});
