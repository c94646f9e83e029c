import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineActor, type ActorDefinition, type JobContext } from "holdfast";
import { z } from "zod";
import { parcelMachine } from "./parcel.machine.ts";

const Input = z.object({ gate: z.string() });

/** Where an attempt that was aborted leaves a line: `<node> <key>`. */
export const abortsOf = (gate: string): string => `${gate}.aborted`;

/** Tells the ledger that an attempt begins, then goes on until its gate opens. The ledger applies a key once and writes down every attempt. */
const pack =
  (ledgerUrl: string) =>
  async (input: unknown, job: JobContext): Promise<unknown> => {
    const { gate } = Input.parse(input);
    const response = await fetch(`${ledgerUrl}/effects`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ callId: job.key, idempotencyKey: job.key, kind: "pack", node: job.node }),
      signal: job.signal,
    });
    if (!response.ok) throw new Error(`ledger answered ${response.status}`);
    job.signal.addEventListener("abort", () => appendFileSync(abortsOf(gate), `${job.node} ${job.key}\n`));
    while (!existsSync(gate)) await pause(20, undefined, { signal: job.signal });
    return { key: job.key, node: job.node };
  };

/** Parcels whose packing takes as long as the test wants. */
export const parcelActors = (ledgerUrl: string): readonly ActorDefinition[] => [
  defineActor({
    type: "parcel",
    machine: parcelMachine,
    jobs: {
      packSure: { crashPolicy: "dedupeKey", run: pack(ledgerUrl) },
      packOnce: { crashPolicy: "unsafe", run: pack(ledgerUrl) },
    },
  }),
];
