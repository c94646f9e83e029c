import { defineActor, type ActorDefinition, type JobContext } from "holdfast";
import { itemMachine, orderMachine } from "./order.machine.ts";

/** Tells the ledger about one attempt of an effect, as a payment service would be told. */
async function effect(ledgerUrl: string, kind: string, job: JobContext): Promise<unknown> {
  const response = await fetch(`${ledgerUrl}/effects`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ callId: job.key, idempotencyKey: job.key, kind, node: job.node }),
    signal: job.signal,
  });
  if (!response.ok) throw new Error(`ledger answered ${response.status}`);
  return { kind, key: job.key };
}

/** The order machines with effects that the ledger counts. */
export const orderActors = (ledgerUrl: string): readonly ActorDefinition[] => [
  defineActor({
    type: "order",
    machine: orderMachine,
    childActors: { item: { type: "item" } },
    jobs: { ship: { crashPolicy: "dedupeKey", run: (_input, job) => effect(ledgerUrl, "ship", job) } },
  }),
  defineActor({
    type: "item",
    machine: itemMachine,
    jobs: { charge: { crashPolicy: "idempotent", run: (_input, job) => effect(ledgerUrl, "charge", job) } },
  }),
];
