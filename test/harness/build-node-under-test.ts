/** A node of one of two builds. Takes its settings as one JSON argument, leaves on SIGTERM. */
import { setTimeout as pause } from "node:timers/promises";
import { createLogger } from "@holdfast/process";
import { defineActor, startNode, type JobContext } from "holdfast";
import { z } from "zod";
import { orderActors } from "./order-actors.ts";
import { firstTill, haulMachine, secondTill } from "./till.machine.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
  name: z.string(),
  ledgerUrl: z.string(),
  leaseTtlMs: z.number(),
  /** `first` knows version 1 of the till; `second` knows 1 and 2, and says that it reads record format 2. */
  build: z.enum(["first", "second"]),
});
const { nats, namespace, name, ledgerUrl, leaseTtlMs, build } = Settings.parse(JSON.parse(process.argv[2] ?? "{}"));

const Input = z.object({ ms: z.number() });

/** Tells the ledger that an attempt begins, then takes its time. */
async function carry(input: unknown, job: JobContext): Promise<unknown> {
  const { ms } = Input.parse(input);
  const response = await fetch(`${ledgerUrl}/effects`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ callId: job.key, idempotencyKey: job.key, kind: "carry", node: job.node }),
    signal: job.signal,
  });
  if (!response.ok) throw new Error(`ledger answered ${response.status}`);
  await pause(ms, undefined, { signal: job.signal });
  return { node: job.node };
}

const node = await startNode({
  nats: { ...nats, inboxPrefix: "_INBOX_node" },
  namespace,
  name,
  build,
  readableFormats: build === "first" ? [1] : [1, 2],
  definitions: [
    ...orderActors(ledgerUrl),
    build === "first"
      ? defineActor({ type: "till", machine: firstTill })
      : defineActor({ type: "till", machine: secondTill, formerMachines: [firstTill] }),
    defineActor({ type: "haul", machine: haulMachine, jobs: { carry: { crashPolicy: "unsafe", run: carry } } }),
  ],
  layout: { pools: { d: 32 }, shards: 4 },
  settings: { leaseTtlMs },
  telemetry: createLogger({ level: "info", node: name }),
});
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);
