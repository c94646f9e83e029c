import type { KeepOutside } from "@holdfast/durable";
import { CHILD_INPUT_LIMIT_BYTES, type ActorRecord, type Effect, type RecordHeader } from "@holdfast/protocol";

/**
 * What is left of an actor that has ended: who it was, how it ended, and what a duplicate of its start is answered with. Bounded, whatever the
 * record held: a large result becomes a blob. Pure.
 */
export function tombstoneOf(record: ActorRecord, endedAtMs: number, atMs: number, outside: KeepOutside): ActorRecord {
  const { status, value, output, error, blobs } = record.snapshot;
  const result = bounded({ ...(output !== undefined && { output }), ...(error !== undefined && { error }) }, outside);
  const named = { ...blobs, ...result.blobs };
  return {
    ...record,
    snapshot: {
      status,
      value,
      context: undefined,
      ...result.fields,
      ...(Object.keys(named).length > 0 && { blobs: named }),
      historyValue: {},
      children: {},
    },
    timers: {},
    outbox: [],
    linksOut: {},
    marks: {},
    messageIds: new Uint8Array(0),
    directory: {},
    ...(record.settled !== undefined && { settled: boundedSettled(record.settled, outside) }),
    tombstone: { endedAtMs, atMs },
  };
}

/** What is left of one that goes with what started it: who it was and how it ended, not with what. Nobody waits for its result any more. */
export function erasedTombstoneOf(record: ActorRecord, endedAtMs: number, atMs: number): ActorRecord {
  const { status, value, historyValue, children } = record.snapshot;
  const { settled, ...rest } = record;
  const bare =
    settled?.kind === "settled" ? { ...settled, event: { type: settled.event.type }, blobs: undefined } : settled;
  const empty: ActorRecord = { ...rest, snapshot: { status, value, context: undefined, historyValue, children } };
  return tombstoneOf({ ...empty, ...(bare !== undefined && { settled: bare }) }, endedAtMs, atMs, () => undefined);
}

/** The header goes with its record; the fields for lists stay as they were. */
export const tombstoneHeader = (header: RecordHeader, token: string, epoch: number, writer: string): RecordHeader => ({
  ...header,
  token,
  epoch,
  writer,
  needsWork: false,
});

function boundedSettled(settled: Effect, outside: KeepOutside): Effect {
  if (settled.kind !== "settled") return settled;
  const { type, ...rest } = settled.event;
  const { fields, blobs } = bounded(rest, outside);
  if (blobs === undefined) return settled;
  return { ...settled, event: { type, ...fields }, blobs: { ...settled.blobs, ...blobs } };
}

function bounded(fields: Readonly<Record<string, unknown>>, outside: KeepOutside) {
  const blobs = outside(fields, CHILD_INPUT_LIMIT_BYTES);
  if (blobs === undefined) return { fields, blobs };
  const left = Object.entries(fields).filter(([name]) => !Object.hasOwn(blobs, name));
  return { fields: Object.fromEntries(left), blobs };
}
