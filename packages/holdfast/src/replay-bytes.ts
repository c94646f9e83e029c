import { createCodec, type Codec } from "@holdfast/codec";
import { actorRefExtension, unsentEntries } from "@holdfast/durable";
import { systemCrc32 } from "@holdfast/process";
import {
  RuntimeFault,
  sha256Hex,
  toPlainFault,
  withBlobFields,
  type JournalEntry,
  type PlainEvent,
} from "@holdfast/protocol";
import { replayStored, type JournalLine, type StoredReplay, type StoredReplayOptions } from "./replay-stored.ts";

/** An actor as it is stored. */
export interface StoredBytes {
  /** The frame of its record. */
  readonly record: Uint8Array;
  /** Its journal messages, in stored order. */
  readonly journal: readonly Uint8Array[];
  /** SHA-256 → payloads that are kept outside of records and journals. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

/** Whether a journal leads to the stored record. `rev` is the revision that does not fit. */
export type ReplayVerdict =
  | { readonly kind: "same"; readonly steps: number }
  | { readonly kind: "different"; readonly rev: number; readonly expected: string; readonly found: string }
  | { readonly kind: "not-replayed"; readonly why: string };

/** Judges stored bytes by a replay. For whoever reads streams with a reader of its own and has no other way to run a machine. */
export function replayJudge(
  options: Pick<StoredReplayOptions, "machines" | "scheme">,
): (stored: StoredBytes) => ReplayVerdict {
  const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
  return ({ record: bytes, journal, blobs }) => {
    try {
      const { record } = codec.decodeRecord(bytes);
      const lineOf = (entry: JournalEntry, seq: number | undefined): JournalLine => ({
        seq,
        entry,
        event: eventOf(codec, blobs, entry),
      });
      const lines = journal.flatMap((message, index) =>
        codec.decodeJournalBatch(message).map((entry) => lineOf(entry, index + 1)),
      );
      const unsent = unsentEntries(record).map((entry) => lineOf(entry, undefined));
      return verdictOf(replayStored({ record, lines: [...lines, ...unsent] }, options), record.rev);
    } catch (error) {
      const { code, message } = toPlainFault(error, "HF-2002");
      return { kind: "not-replayed", why: `${code} ${message}` };
    }
  };
}

function eventOf(codec: Codec, stored: StoredBytes["blobs"], { event, blobs }: JournalEntry): PlainEvent {
  if (blobs === undefined) return event;
  const values: Record<string, unknown> = {};
  for (const [field, { sha256, size }] of Object.entries(blobs)) {
    const bytes = stored.get(sha256);
    if (bytes === undefined || bytes.length !== size || sha256Hex(bytes) !== sha256) {
      throw new RuntimeFault("HF-3007", `Blob ${sha256}: expected ${size} bytes, found none or others. Restore it.`);
    }
    values[field] = codec.decodeValue(bytes);
  }
  return withBlobFields(event, values);
}

function verdictOf({ steps, end, differences }: StoredReplay, storedRev: number): ReplayVerdict {
  switch (end.kind) {
    case "mismatch":
      return different(end.rev, end.path, end.expected, end.found);
    case "contradiction":
      return different(end.rev, end.path, end.first, end.second);
    case "gap":
      return { kind: "different", rev: end.rev, expected: `revision ${end.rev}`, found: `revision ${end.found}` };
    case "unknown-machine":
      return { kind: "not-replayed", why: `revision ${end.rev} needs machine ${end.wanted}` };
    case "unreplayable":
      return { kind: "not-replayed", why: `revision ${end.rev}: ${end.why}` };
    case "complete": {
      const [first] = differences ?? [];
      return first === undefined
        ? { kind: "same", steps: steps.length }
        : different(storedRev, first.path, first.before, first.after);
    }
  }
}

const different = (rev: number, path: string, expected: unknown, found: unknown): ReplayVerdict => ({
  kind: "different",
  rev,
  expected: textOf(path, expected),
  found: textOf(path, found),
});

const textOf = (path: string, value: unknown): string =>
  `${path} ${value === undefined ? "absent" : JSON.stringify(value).slice(0, 200)}`;
