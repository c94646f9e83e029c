import type { ActorKey, EventKind, LifecycleEvent } from "@holdfast/protocol";
import type { PublishOutcome } from "./message-log.ts";

export interface JournalLine {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** What is told to others: the journal of every actor, public events, volatile progress. */
export interface Journal {
  /** @param blobs SHA-256 of the blobs that the entries name */
  append(key: ActorKey, bytes: Uint8Array, messageId: string, blobs?: readonly string[]): Promise<PublishOutcome>;
  /** Journal of one actor in stored order. */
  read(key: ActorKey, signal: AbortSignal): Promise<readonly JournalLine[]>;
  /** Stores a public event, once per id, as far as the stream remembers. @param name tokens of its subject after the kind */
  publishEvent(kind: EventKind, name: readonly string[], event: LifecycleEvent): Promise<PublishOutcome>;
  /** Says in the audit stream what somebody had done. */
  audit(verb: string, bytes: Uint8Array, messageId: string): Promise<PublishOutcome>;
  /** Core message, never stored, may be lost. */
  publishLive(key: ActorKey, bytes: Uint8Array): void;
  /** Core message to an inbox subject that a sender waits on. Never stored, may be lost: the sender asks again under its key. */
  reply(subject: string, bytes: Uint8Array): void;
}
