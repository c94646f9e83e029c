/**
 * A node with orders and parcels that a test stops, continues and ends by signals, or that does so itself at a crash point. Takes its settings
 * as one JSON argument, and further faults as lines `{"arm":[…]}` on standard input.
 */
import { createInterface } from "node:readline";
import { createLogger } from "@holdfast/process";
import { startNode } from "holdfast";
import { z } from "zod";
import { FaultPoints, FaultStep } from "./fault-points.ts";
import { orderActors } from "./order-actors.ts";
import { parcelActors } from "./parcel-actors.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string().optional(), password: z.string().optional() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  replicas: z.number(),
  runtime: z.record(z.string(), z.number()),
  faults: z.array(FaultStep).default([]),
});
const given = Settings.parse(JSON.parse(process.argv[2] ?? "{}"));
const { nats, namespace, name, ledgerUrl, replicas, runtime, faults } = given;

const crashPoints = new FaultPoints();
crashPoints.arm(faults);
createInterface({ input: process.stdin }).on("line", (line) => crashPoints.tell(line));

const node = await startNode({
  nats: {
    servers: nats.servers,
    ...(nats.user !== undefined && { user: nats.user }),
    ...(nats.password !== undefined && { password: nats.password }),
  },
  namespace,
  name,
  definitions: [...orderActors(ledgerUrl), ...parcelActors(ledgerUrl)],
  layout: { pools: { d: 8 }, shards: 2 },
  replicas,
  settings: { sweepMs: 1000, idleCleanMs: 200, passivateMs: 2000, cursorFlushMs: 500, ...runtime },
  telemetry: createLogger({ level: "info", node: name }),
  crashPoints,
});
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
