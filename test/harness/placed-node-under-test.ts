/** A node of some pools that serves some types. Takes its settings as one JSON argument, leaves on SIGTERM. */
import { createLogger } from "@holdfast/process";
import { startNode } from "holdfast";
import { z } from "zod";
import { orderActors } from "./order-actors.ts";
import { parcelActors } from "./parcel-actors.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  pools: z.array(z.string()),
  weight: z.number(),
  /** Actor types it serves; items live in a pool of their own. */
  types: z.array(z.string()),
  runtime: z.record(z.string(), z.number()),
});
export type PlacedNodeSettings = z.infer<typeof Settings>;

const { nats, namespace, name, ledgerUrl, pools, weight, types, runtime } = Settings.parse(
  JSON.parse(process.argv[2] ?? "{}"),
);

const definitions = [...orderActors(ledgerUrl), ...parcelActors(ledgerUrl)].map((definition) => ({
  ...definition,
  ...(definition.type === "item" && { pool: "far" }),
  ...(definition.type === "order" && { childActors: { item: { type: "item", pool: "far" } } }),
}));
const node = await startNode({
  nats: { ...nats, inboxPrefix: "_INBOX_node" },
  namespace,
  name,
  pools,
  weight,
  build: "test",
  definitions: definitions.filter(({ type }) => types.includes(type)),
  layout: { pools: { d: 12 }, shards: 2 },
  settings: { sweepMs: 1000, idleCleanMs: 200, passivateMs: 2000, cursorFlushMs: 500, ...runtime },
  telemetry: createLogger({ level: "info", node: name }),
});
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
