/** A node whose crash points are lethal. Takes its settings as one JSON argument, prints one JSON line when it begins. */
import { createLogger } from "@holdfast/process";
import { startNode } from "holdfast";
import { z } from "zod";
import { FaultPoints, FaultStep } from "./fault-points.ts";
import { orderActors } from "./order-actors.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  leaseTtlMs: z.number(),
  sweepMs: z.number().default(1000),
  /** Kills the process when a point was reached `nth` times with a detail that contains `match`. */
  crash: FaultStep.omit({ act: true }).optional(),
});
const settings = Settings.parse(JSON.parse(process.argv[2] ?? "{}"));

const crashPoints = new FaultPoints();
if (settings.crash !== undefined) crashPoints.arm([{ ...settings.crash, act: "kill" }]);

process.stdout.write(`${JSON.stringify({ node: settings.name })}\n`);
const node = await startNode({
  nats: settings.nats,
  namespace: settings.namespace,
  name: settings.name,
  definitions: orderActors(settings.ledgerUrl),
  // Small, so that a test does not wait for dozens of streams.
  layout: { pools: { d: 8 }, shards: 2 },
  settings: { leaseTtlMs: settings.leaseTtlMs, sweepMs: settings.sweepMs, idleCleanMs: 200, passivateMs: 2000 },
  telemetry: createLogger({ level: "info", node: settings.name }),
  crashPoints,
});
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
