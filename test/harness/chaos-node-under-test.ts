/**
 * A node with conversations, orders and parcels for a run under misfortune. Takes its settings as one JSON argument, and further faults as lines
 * `{"arm":[…]}` on standard input. A fault may be planted into its build.
 */
import { createInterface } from "node:readline";
import { agentActors } from "@holdfast/node-app";
import { createLogger, parseConfig } from "@holdfast/process";
import type { NodeContext, StartNodeOptions } from "holdfast";
import { composeNode } from "holdfast/wiring";
import { z } from "zod";
import { FaultPoints, FaultStep } from "./fault-points.ts";
import { orderActors } from "./order-actors.ts";
import { plant, PlantedBreak } from "./planted-breaks.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  /** Without it only orders are served. */
  modelBaseUrl: z.string().optional(),
  partitions: z.int(),
  shards: z.int(),
  runtime: z.record(z.string(), z.number()),
  faults: z.array(FaultStep),
  planted: PlantedBreak.optional(),
});
const settings = Settings.parse(JSON.parse(process.argv[2] ?? "{}"));
const { nats, namespace, name, ledgerUrl, modelBaseUrl, partitions, shards, runtime, planted } = settings;

const crashPoints = new FaultPoints();
crashPoints.arm(settings.faults);
createInterface({ input: process.stdin }).on("line", (line) => crashPoints.tell(line));

const telemetry = createLogger({ level: "info", node: name });
const conversations = (context: NodeContext) =>
  modelBaseUrl === undefined
    ? []
    : agentActors({ config: parseConfig({ HOLDFAST_MODEL_BASE_URL: modelBaseUrl }), node: name, telemetry }, context);
const options: StartNodeOptions = {
  nats: { ...nats, inboxPrefix: "_INBOX_node" },
  namespace,
  name,
  definitions: (context) => [...conversations(context), ...orderActors(ledgerUrl)],
  layout: { pools: { d: partitions }, shards },
  settings: { idleCleanMs: 200, passivateMs: 2000, cursorFlushMs: 500, ...runtime },
  telemetry,
  crashPoints,
};
const node = await composeNode(options, (wiring) => (planted === undefined ? wiring : plant(planted, wiring)));
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
