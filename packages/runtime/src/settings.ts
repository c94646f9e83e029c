/** Times and limits of one node. All durations in ms. */
export interface RuntimeSettings {
  /** A node whose heartbeat stands still for this long (and three of ours were stored meanwhile) is dead. */
  readonly leaseTtlMs: number;
  readonly heartbeatMs: number;
  readonly sweepMs: number;
  /** How often a sweep begins at the very first record instead of its last barrier. */
  readonly fullScanMs: number;
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
  readonly rehydrateConcurrency: number;
  readonly jobConcurrency: number;
  /** Partition moves one node takes part in at a time. */
  readonly movesAtOnce: number;
}

export const DEFAULT_SETTINGS: RuntimeSettings = {
  leaseTtlMs: 3000,
  heartbeatMs: 1000,
  sweepMs: 30_000,
  fullScanMs: 86_400_000,
  drainGraceMs: 600_000,
  idleCleanMs: 1000,
  passivateMs: 60_000,
  cursorFlushMs: 5000,
  journalLingerMs: 5,
  orphanMs: 600_000,
  rehydrateConcurrency: 16,
  jobConcurrency: 32,
  movesAtOnce: 2,
};

/** Fills in defaults; the heartbeat follows the TTL unless it is given. */
export function resolveSettings(given: Partial<RuntimeSettings>): RuntimeSettings {
  const leaseTtlMs = given.leaseTtlMs ?? DEFAULT_SETTINGS.leaseTtlMs;
  return { ...DEFAULT_SETTINGS, heartbeatMs: Math.floor(leaseTtlMs / 3), ...given, leaseTtlMs };
}
