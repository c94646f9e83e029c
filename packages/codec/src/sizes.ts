import { RECORD_HARD_LIMIT_BYTES, RECORD_SOFT_LIMIT_BYTES, RuntimeFault, type ActorRecord } from "@holdfast/protocol";

/** Bytes of one message: below the `max_payload` of NATS (1 MiB) with room for its headers. */
export const ENVELOPE_LIMIT_BYTES = 900 * 1024;

/** `soft`: store it and log a warning. `hard`: refuse the message that would cause it. */
export type RecordSize =
  | { readonly kind: "ok" }
  | { readonly kind: "soft"; readonly limitBytes: number }
  | { readonly kind: "hard"; readonly limitBytes: number };

export function checkRecordSize(sizeBytes: number): RecordSize {
  if (sizeBytes > RECORD_HARD_LIMIT_BYTES) return { kind: "hard", limitBytes: RECORD_HARD_LIMIT_BYTES };
  if (sizeBytes >= RECORD_SOFT_LIMIT_BYTES) return { kind: "soft", limitBytes: RECORD_SOFT_LIMIT_BYTES };
  return { kind: "ok" };
}

/**
 * The fault for a record beyond the hard limit, naming the three largest fields of its context.
 *
 * @param measure encoded size of a value in bytes
 */
export function tooLarge(record: ActorRecord, sizeBytes: number, measure: (value: unknown) => number): RuntimeFault {
  const { context } = record.snapshot;
  const fields = typeof context === "object" && context !== null ? Object.entries(context) : [];
  const largest = fields
    .map(([name, value]) => ({ name: name.slice(0, 64), bytes: measure(value) }))
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(({ name, bytes }) => `${name} ${bytes} B`)
    .join(", ");
  return new RuntimeFault(
    "HF-2004",
    `Record ${record.key}: ${sizeBytes} bytes, at most ${RECORD_HARD_LIMIT_BYTES} are allowed. Largest in its context: ${largest || "none"}. ` +
      "Keep bulky content in the journal or in a blob and only its id in the context.",
    { facts: { key: record.key, sizeBytes, limitBytes: RECORD_HARD_LIMIT_BYTES, largest } },
  );
}

/** @throws RuntimeFault HF-1001 when a message is beyond the limit. `what` names it: "Envelope m1" */
export function assertEnvelopeSize(what: string, sizeBytes: number): void {
  if (sizeBytes <= ENVELOPE_LIMIT_BYTES) return;
  throw new RuntimeFault(
    "HF-1001",
    `${what}: ${sizeBytes} bytes, at most ${ENVELOPE_LIMIT_BYTES} are allowed. Put bulky content into a blob and send its id.`,
    { facts: { sizeBytes, limitBytes: ENVELOPE_LIMIT_BYTES } },
  );
}
