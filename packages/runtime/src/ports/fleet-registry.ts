import type { CommitOutcome } from "./record-store.ts";

export interface FleetValue {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly seq: number;
  /** Broker time of the write, Unix ms. */
  readonly storedAtMs: number;
}

/** A bucket of small values: the fleet's (heartbeats, leases, wants, flags, reports), or that of what is stuck. */
export interface FleetRegistry {
  /** Unconditional write. @returns sequence and broker time of the write; used as one's own heartbeat and clock sample. @param blobs  SHA-256 of the blobs that the value names */
  put(
    key: string,
    bytes: Uint8Array,
    blobs?: readonly string[],
  ): Promise<{ readonly seq: number; readonly storedAtMs: number } | undefined>;
  /** Compare-and-set under I7; `token` is looked for in the stored JSON's `token` field. */
  compareAndSet(key: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome>;
  /** Leader read. */
  get(key: string): Promise<FleetValue | undefined>;
  /**
   * All current values, then every change in order; survives reconnects. Resolves once the current values were delivered.
   * @param keys  only keys of this pattern, `<beginning>.>`; default all
   */
  watch(deliver: (value: FleetValue) => void, keys?: string): Promise<{ stop(): Promise<void> }>;
  remove(key: string): Promise<void>;
}
