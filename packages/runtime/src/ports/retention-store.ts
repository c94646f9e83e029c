import type { ActorKey } from "@holdfast/protocol";

/** A record whose actor has ended, as its headers tell. */
export interface EndedRecord {
  readonly key: ActorKey;
  readonly seq: number;
  /** Broker time of its last write, Unix ms. */
  readonly storedAtMs: number;
  readonly isTombstone: boolean;
  /** What it held is to go soon. */
  readonly isToErase: boolean;
}

/** Ended records that are asked for. */
export interface WantedRecords {
  readonly isDue: (record: EndedRecord) => boolean;
  readonly fromSeq: number;
  readonly limit: number;
}

/** The newest message of a journal. */
export interface JournalEnd {
  readonly seq: number;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
}

/** What may be found and removed for good. Removal is by key and sequence: a newer value of the key stays. Doing it twice does no harm. */
export interface RetentionStore {
  /** Headers only. `ended`: what was asked for, the oldest last write first; `keys`: of everything that has a record. */
  survey(
    partition: string,
    wanted: WantedRecords,
    signal: AbortSignal,
  ): Promise<{ readonly ended: readonly EndedRecord[]; readonly keys: ReadonlySet<ActorKey> }>;
  /** Afterwards the key was never written, unless it was written again since `seq`. */
  removeRecord(key: ActorKey, seq: number): Promise<void>;
  /** Keys of a partition that have a journal. */
  journaled(partition: string, signal: AbortSignal): Promise<readonly ActorKey[]>;
  journalEnd(key: ActorKey): Promise<JournalEnd | undefined>;
  /** Removes the entries of one actor, up to a sequence. */
  removeJournal(key: ActorKey, throughSeq: number): Promise<void>;
}
