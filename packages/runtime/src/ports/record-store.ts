import type { ActorKey } from "@holdfast/protocol";

/** A stored value and the sequence of its key. */
export interface StoredValue {
  readonly bytes: Uint8Array;
  readonly seq: number;
}

/**
 * Outcome of one compare-and-set. `stale`: another writer moved first, nothing was stored.
 * `unknown`: the port gave up retrying the same bytes; the caller must forget its copy and read again.
 */
export type CommitOutcome =
  | { readonly kind: "committed"; readonly seq: number }
  | { readonly kind: "stale"; readonly currentSeq: number | undefined }
  | { readonly kind: "unknown"; readonly reason: string };

export interface CommitRequest {
  readonly key: ActorKey;
  readonly bytes: Uint8Array;
  /** Sequence of the value this one replaces; 0 when the key must not exist. */
  readonly expectedSeq: number;
  /** Token of this attempt; `tokenOf(bytes)` of the stored value must equal it for an ambiguous write to count as ours. */
  readonly token: string;
  /** Goes into the message header, so that a scan can skip sleepers without reading their bytes. */
  readonly needsWork: boolean;
  /** It needs no work, and something has to come to it from elsewhere: readable without its bytes for who looks after that. */
  readonly waits?: boolean;
  /** SHA-256 of the blobs that the record names: readable without its bytes for who sweeps blobs. */
  readonly blobs?: readonly string[];
  /** The actor has ended: readable without its bytes for who removes what nobody needs any more. */
  readonly ended?: "record" | "erase" | "tombstone" | undefined;
}

export interface ScanEntry {
  readonly key: string;
  readonly seq: number;
  readonly needsWork: boolean;
  /** As its commit said. */
  readonly waits?: boolean;
  /** The whole value of a record that needs work, where the store read it anyway. */
  readonly bytes?: Uint8Array | undefined;
}

/** A partition to be scanned, and the first sequence that is of interest there. */
export interface ScanPart {
  readonly partition: string;
  readonly fromSeq: number;
}

export interface ScanRequest {
  /** Partitions of one shard, each once; at least one. */
  readonly parts: readonly ScanPart[];
  /** Hand over values too, where there is little to read. */
  readonly wantsValues?: boolean;
  readonly visit: (entry: ScanEntry) => void;
  readonly signal: AbortSignal;
}

/** Where actor records live. Reads for decisions go to the leader. */
export interface RecordStore {
  /** Latest value of a key. @returns undefined when the key was never written */
  load(key: ActorKey): Promise<StoredValue | undefined>;
  /** Retries the same bytes with the same expectation until acknowledged, in conflict, or `signal` aborts (I7). */
  commit(request: CommitRequest): Promise<CommitOutcome>;
  /**
   * Writes one barrier into the shard, then hands every record of the parts with `seq >= fromSeq` to `visit`, at its latest value, until the
   * barrier itself is seen.
   * @returns the sequence of the barrier
   */
  scan(request: ScanRequest): Promise<number>;
  /** Last sequence of the bucket that has a partition's records, whosever it is. Leader read. */
  lastSeq(partition: string): Promise<number>;
  /** Generation of the sequences of a partition's records. */
  generation(partition: string): string;
  /** Leader read. @returns undefined when there is none */
  loadCheckpoint(partition: string): Promise<StoredValue | undefined>;
  /** Compare-and-set under I7; `token` is looked for in the stored JSON's `token` field. */
  storeCheckpoint(partition: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome>;
}
