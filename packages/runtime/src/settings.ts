/** Times and limits of one node. All durations in ms. */
export interface RuntimeSettings {
  /** A node whose heartbeat stands still for this long (and three of ours were stored meanwhile) is dead. */
  readonly leaseTtlMs: number;
  readonly heartbeatMs: number;
  readonly sweepMs: number;
  /** How often a sweep begins at the very first record instead of its last barrier. */
  readonly fullScanMs: number;
  /** Records that one look for counterparts reads, suspects first; there are two looks in a sweep. */
  readonly counterpartReads: number;
  /** How long a planned leave waits for its running jobs. */
  readonly drainGraceMs: number;
  /** An actor at rest for this long gets its acknowledged outbox cleared by a write. */
  readonly idleCleanMs: number;
  /** An actor at rest for this long leaves memory. */
  readonly passivateMs: number;
  readonly cursorFlushMs: number;
  /** A journal entry that nobody waits for waits this long for the next ones of its actor, to share a message with them. */
  readonly journalLingerMs: number;
  /** Messages to an actor that was never started are kept for this long. */
  readonly orphanMs: number;
  /** How long a message waits for one before it on its link until its sender is asked for that again. */
  readonly gapMs: number;
  /**
   * Times that a message which makes its machine throw is tried before it is taken out, and that something may take its node down while
   * it is tried alone.
   */
  readonly maxAttempts: number;
  /** A partition whose owner has lived for this long after it took it up counts as harmless again. */
  readonly crashWindowMs: number;
  /** Actors that the whole node loads for a takeover, a sweep or a recheck at the same time. */
  readonly rehydrateConcurrency: number;
  /** Actors that the whole node steps at the same time: load, macrostep, commit. */
  readonly stepConcurrency: number;
  /** Jobs of one source that run at the same time, unless its definition says otherwise. */
  readonly jobConcurrency: number;
  /** Jobs of the whole node that run at the same time. */
  readonly nodeJobConcurrency: number;
  /** Provider tag → jobs with that tag that run at the same time. */
  readonly providerConcurrency: Readonly<Record<string, number>>;
  /** Role → principals that have it, `<kind>-<id>`. The same on every node: who may do what must not depend on who owns an actor. */
  readonly roles: Readonly<Record<string, readonly string[]>>;
  /** Memory that this process is meant for, MiB. What it holds for actors is bounded so that it stays near that. */
  readonly memoryMb: number;
  /** Messages of one partition that wait for their actors from which on senders from outside are told to come back later. */
  readonly busyFrom: number;
  /** An actor that ended is made a tombstone after this time; until then its record is whole. */
  readonly keepEndedMs: number;
  /** The pending jobs of an actor that was held for this long end as cancelled. */
  readonly keepHeldMs: number;
  /** What waits for the successor of a planned restart is taken by anybody after this time without an acknowledgement. */
  readonly restartWaitMs: number;
  /** The same of one that was deleted; its journal goes at once. Long enough for whoever is about to share it. */
  readonly eraseAfterMs: number;
  /** A tombstone that nobody needs any more goes after this time, and its journal with it. */
  readonly keepTombstoneMs: number;
  /** How often the owner of a partition looks for what may go. */
  readonly retentionMs: number;
  /** Actors of one partition that one look deals with. */
  readonly retentionBatch: number;
  /** Blobs that nothing names any more go when they are at least this old. */
  readonly keepBlobMs: number;
  readonly blobSweepMs: number;
  /** Partition moves one node takes part in at a time. */
  readonly movesAtOnce: number;
}

const DAY_MS = 24 * 3_600_000;

export const DEFAULT_SETTINGS: RuntimeSettings = {
  leaseTtlMs: 3000,
  heartbeatMs: 1000,
  sweepMs: 30_000,
  fullScanMs: 86_400_000,
  counterpartReads: 1000,
  drainGraceMs: 600_000,
  idleCleanMs: 1000,
  passivateMs: 60_000,
  cursorFlushMs: 5000,
  journalLingerMs: 100,
  orphanMs: 600_000,
  gapMs: 10_000,
  maxAttempts: 3,
  crashWindowMs: 10_000,
  rehydrateConcurrency: 32,
  stepConcurrency: 256,
  jobConcurrency: 32,
  nodeJobConcurrency: 128,
  providerConcurrency: {},
  roles: {},
  memoryMb: 512,
  busyFrom: 1000,
  movesAtOnce: 2,
  keepEndedMs: 7 * DAY_MS,
  keepHeldMs: 30 * DAY_MS,
  restartWaitMs: 10_000,
  eraseAfterMs: 60_000,
  keepTombstoneMs: 30 * DAY_MS,
  retentionMs: 3_600_000,
  retentionBatch: 500,
  keepBlobMs: DAY_MS,
  blobSweepMs: 6 * 3_600_000,
};

/** Fills in defaults; the heartbeat follows the TTL unless it is given. */
export function resolveSettings(given: Partial<RuntimeSettings>): RuntimeSettings {
  const leaseTtlMs = given.leaseTtlMs ?? DEFAULT_SETTINGS.leaseTtlMs;
  return { ...DEFAULT_SETTINGS, heartbeatMs: Math.floor(leaseTtlMs / 3), ...given, leaseTtlMs };
}
