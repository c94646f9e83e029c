import type { ActorRecord, JournalEntry, PlainEvent } from "@holdfast/protocol";
import type { StepMessage } from "../index.ts";
import { fromText } from "./round-trip.ts";

/** A message on its way to an actor. */
export interface Posted {
  readonly to: string;
  readonly message: StepMessage;
}

/** Everything that survives the process. Plain data but for addresses and errors inside of records and messages. */
export interface ToyDb {
  nowMs: number;
  nextSeq: number;
  readonly records: Record<string, ActorRecord>;
  readonly inbox: Posted[];
  /** Every message between actors that was ever posted. */
  readonly history: Posted[];
  /** Effects that leave for a place that dedupes by id. */
  readonly seen: Record<string, true>;
  readonly journal: string[];
  readonly emitted: PlainEvent[];
  readonly revisions: string[];
  /** Journal entries as they were sent, repeated ones included. */
  readonly entries: JournalEntry[];
  readonly drops: { readonly to: string; readonly kind: string; readonly reason: string }[];
}

export const emptyDb = (): ToyDb => ({
  nowMs: 0,
  nextSeq: 1,
  records: {},
  inbox: [],
  history: [],
  seen: {},
  journal: [],
  emitted: [],
  revisions: [],
  entries: [],
  drops: [],
});

/** A db that was written as text. */
export function dbOf(text: string): ToyDb {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every text of a db is written from a ToyDb
  return fromText(text) as ToyDb;
}
