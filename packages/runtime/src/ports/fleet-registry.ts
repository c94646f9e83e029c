import type { CommitOutcome } from "./record-store.ts";

export interface FleetValue {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly seq: number;
  /** Broker time of the write, Unix ms. */
  readonly storedAtMs: number;
}

/** The fleet bucket: heartbeats, leases, wants, flags, reports. */
export interface FleetRegistry {
  /** Unconditional write. @returns sequence and broker time of the write; used as one's own heartbeat and clock sample */
  put(key: string, bytes: Uint8Array): Promise<{ readonly seq: number; readonly storedAtMs: number } | undefined>;
  /** Compare-and-set under I7; `token` is looked for in the stored JSON's `token` field. */
  compareAndSet(key: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome>;
  /** Leader read. */
  get(key: string): Promise<FleetValue | undefined>;
  /** All current values, then every change in order; survives reconnects. Resolves once the current values were delivered. */
  watch(deliver: (value: FleetValue) => void): Promise<{ stop(): Promise<void> }>;
  remove(key: string): Promise<void>;
}
