/** Between the steps in which what nobody needs any more goes. */
export const RETENTION_CRASH_POINTS = [
  "before-tombstone",
  "after-tombstone",
  "record-removed",
  "journal-removed",
] as const;

/** Named places on the path of a message at which the tests kill the process, and those of retention. Nothing happens there in production. */
export const CRASH_POINTS = [
  "before-commit",
  "after-commit",
  "mid-dispatch",
  "after-dispatch",
  "before-job",
  "job-done",
  "outcome-published",
  "before-create",
  "after-lease-claim",
  "after-barrier",
  "mid-rehydration",
  "before-release",
  ...RETENTION_CRASH_POINTS,
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

export interface CrashPoints {
  /** @param detail what is being done, so that a test can aim (an actor key, a partition) */
  reach(point: CrashPoint, detail: string): void | Promise<void>;
}

export const noCrashPoints: CrashPoints = { reach: () => undefined };
