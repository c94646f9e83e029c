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

/** What stands in a partition about one of its actors: it is to be erased, as what started it was. */
export interface ErasureOrder {
  readonly key: ActorKey;
  readonly seq: number;
  /** Broker time at which it was given, Unix ms. */
  readonly storedAtMs: number;
}

/** Orders to erase actors, kept in the bucket of their records. Anybody gives one, the owner of the actor's partition carries it out. */
export interface ErasureOrders {
  /** Stored when it resolves. One that stands already is given anew. */
  give(key: ActorKey): Promise<void>;
  /** It was carried out. One that was given anew since `seq` stays. */
  withdraw(key: ActorKey, seq: number): Promise<void>;
}

/** The newest message of a journal. */
export interface JournalEnd {
  readonly seq: number;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
}

/** What the headers of a partition's records tell. */
export interface RecordSurvey {
  /** What was asked for, the oldest last write first. */
  readonly ended: readonly EndedRecord[];
  /** Of everything that has a record. */
  readonly keys: ReadonlySet<ActorKey>;
  /** At most `limit`, the oldest first. */
  readonly orders: readonly ErasureOrder[];
}

/** What may be found and removed for good. Removal is by key and sequence: a newer value of the key stays. Doing it twice does no harm. */
export interface RetentionStore {
  survey(partition: string, wanted: WantedRecords, signal: AbortSignal): Promise<RecordSurvey>;
  /** Afterwards the key was never written, unless it was written again since `seq`. */
  removeRecord(key: ActorKey, seq: number): Promise<void>;
  /** Keys of a partition that have a journal. */
  journaled(partition: string, signal: AbortSignal): Promise<readonly ActorKey[]>;
  journalEnd(key: ActorKey): Promise<JournalEnd | undefined>;
  /** Removes the entries of one actor, up to a sequence. */
  removeJournal(key: ActorKey, throughSeq: number): Promise<void>;
}
