import { z } from "zod";
import type { AcceptedCommand } from "./accepted-command.ts";
import type { JournalMessage } from "./journal-message.ts";

/** The clear header of a stored record, as far as it is judged. */
export const CheckedHeader = z.looseObject({
  /** Epoch of the lease under which it was written. */
  epoch: z.number(),
  key: z.string(),
  genesis: z.string(),
  rev: z.number(),
  status: z.string(),
  needsWork: z.boolean(),
  /** Incarnation that wrote it, `<node>:<nonce>`. */
  writer: z.string(),
});
export type CheckedHeader = z.infer<typeof CheckedHeader>;

/** A stored record, as far as it is judged. */
export const CheckedRecord = z.looseObject({
  key: z.string(),
  type: z.string(),
  id: z.string(),
  genesis: z.string(),
  parent: z.looseObject({ key: z.string(), genesis: z.string(), childId: z.string() }).optional(),
  rev: z.number(),
  status: z.enum(["active", "closing", "done", "error", "stopped"]),
  outbox: z.array(z.looseObject({ kind: z.string(), id: z.string() })),
  timers: z.record(z.string(), z.looseObject({ gen: z.string(), dueAtMs: z.number() })),
  considered: z.object({ generation: z.string(), inbox: z.number(), control: z.number() }),
  snapshot: z.looseObject({
    value: z.unknown(),
    children: z.record(
      z.string(),
      z.looseObject({ kind: z.enum(["actor", "job", "host"]), key: z.string(), status: z.string() }),
    ),
  }),
});
export type CheckedRecord = z.infer<typeof CheckedRecord>;

/** An actor at its latest. */
export interface CheckedActor {
  readonly header: CheckedHeader;
  readonly record: CheckedRecord;
  /** The whole frame as it is stored, for whoever replays it with another reader. */
  readonly bytes: Uint8Array;
}

/** A message that is still in an inbox stream, or was set aside into a parked one. */
export interface CheckedMessage {
  readonly stream: string;
  readonly seq: number;
  /** `parked`: it lies in the parked stream. */
  readonly lane: "inbox" | "control" | "parked";
  /** Actor it is for. */
  readonly key: string;
  /** Token `<kind>-<id>` of an outside sender; undefined for messages of actors. */
  readonly principal: string | undefined;
  readonly messageId: string;
  readonly storedAtMs: number;
}

/** Who owns a partition. */
export const CheckedLease = z.looseObject({
  partition: z.string(),
  epoch: z.number(),
  state: z.enum(["held", "released"]),
  holder: z.string(),
  generation: z.string(),
  /** Lowest inbox sequence not considered yet. */
  cursor: z.number(),
});
export type CheckedLease = z.infer<typeof CheckedLease>;

/**
 * Everything that is judged, read while nothing moves: what the namespace stores, what clients were told, what the outside world counted.
 * Made by `collectEvidence`; tests make it by hand.
 */
export interface CheckEvidence {
  /** Broker time of the reading, Unix ms. */
  readonly atMs: number;
  readonly actors: readonly CheckedActor[];
  /** Every stored journal message, in the order of its stream; repeated ones included. */
  readonly journal: readonly JournalMessage[];
  /** What the inbox and parked streams still hold. Inbox streams are trimmed below every stored cursor: a message that is not there proves nothing. */
  readonly messages: readonly CheckedMessage[];
  readonly leases: readonly CheckedLease[];
  /** What clients were told about their commands. Not in NATS: the load generator writes it down. */
  readonly accepted: readonly AcceptedCommand[];
  /** Lines of the ledger's own log, without line feeds; undefined when no ledger took part. */
  readonly ledger: readonly string[] | undefined;
  /** SHA-256 → payloads that are kept outside of records and journals. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
  /** Stored values that are no record, journal message or lease: where, and why not. */
  readonly unreadable: readonly { readonly where: string; readonly why: string }[];
}
