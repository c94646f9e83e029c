/** A node whose build may be one that cannot take everything. Takes its settings as one JSON argument. */
import { createLogger } from "@holdfast/process";
import { defineActor, startNode } from "holdfast";
import { z } from "zod";
import { orderActors } from "./order-actors.ts";
import { vaultMachine } from "./poison.machine.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string(), inboxPrefix: z.string() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  isHealed: z.boolean(),
  runtime: z.record(z.string(), z.number()),
});
const { nats, namespace, name, ledgerUrl, isHealed, runtime } = Settings.parse(JSON.parse(process.argv[2] ?? "{}"));

const node = await startNode({
  nats,
  namespace,
  name,
  definitions: [...orderActors(ledgerUrl), defineActor({ type: "vault", machine: vaultMachine(isHealed) })],
  layout: { pools: { d: 8 }, shards: 2 },
  settings: { sweepMs: 1000, idleCleanMs: 200, passivateMs: 2000, cursorFlushMs: 500, ...runtime },
  telemetry: createLogger({ level: "info", node: name }),
});
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
