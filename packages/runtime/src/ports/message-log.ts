import type { ActorKey, Ancestor, Principal } from "@holdfast/protocol";

/** `accepted`: stored at `seq` (or stored before, `duplicate`). `refused`: certainly not stored. `unknown`: may be stored; sending the same id again is safe. */
export type PublishOutcome =
  | { readonly kind: "accepted"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "refused"; readonly reason: string; readonly retryable: boolean }
  | { readonly kind: "unknown"; readonly reason: string };

export interface InboxMessage {
  readonly key: ActorKey;
  readonly lane: "inbox" | "control";
  /** Present when it came from outside. */
  readonly principal: Principal | undefined;
  readonly seq: number;
  readonly bytes: Uint8Array;
  /** Broker time at which it was stored, Unix ms. */
  readonly storedAtMs: number;
  readonly messageId: string;
}

/** Where the inbox stream of a partition stands. */
export interface InboxPosition {
  readonly generation: string;
  readonly lastSeq: number;
  /** Share of the bytes it may hold that it holds, 0 to 1; absent when it has no limit. */
  readonly fill?: number;
  /** Earlier generations whose sequences still name the same messages, up to a point. */
  readonly lineage: readonly Ancestor[];
}

export interface InboxSubscription {
  /** Resolves when everything stored before the call was handed over. Used as the barrier before timers fire. */
  readThrough(signal: AbortSignal): Promise<void>;
  /** Aborts when it ended by itself, for the RuntimeFault that is the reason: nothing is handed over any more. Never by `stop`. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}

/** Inbox, control and parked streams. */
export interface MessageLog {
  /** @param blobs SHA-256 of the blobs that the message names: readable without its bytes for who sweeps blobs */
  publish(
    lane: "inbox" | "control" | "parked",
    key: ActorKey,
    bytes: Uint8Array,
    messageId: string,
    blobs?: readonly string[],
  ): Promise<PublishOutcome>;
  /** Ordered, gapless delivery of one partition's messages from `fromSeq` on; survives reconnects. `deliver` must not block. */
  subscribe(partition: string, fromSeq: number, deliver: (message: InboxMessage) => void): Promise<InboxSubscription>;
  /** Messages of one actor from a sequence on, oldest first, at most `limit`. Used after a mailbox overflow, and for parked messages. */
  fetch(lane: "inbox" | "parked", key: ActorKey, fromSeq: number, limit: number): Promise<readonly InboxMessage[]>;
  /** Generation and last sequence of the inbox stream of a partition. */
  position(partition: string): Promise<InboxPosition>;
  /** Removes parked messages that were re-offered, or inbox messages below the cursor of every partition of the stream. */
  trim(lane: "inbox" | "parked", target: string, belowSeq: number): Promise<void>;
}
