/** How far a ledger has come; only what is on disk counts. */
export type Progress = {
  readonly attempts: number;
  readonly applied: number;
  /** Distinct calls settled. */
  readonly settled: number;
};

/** Counts what became durable and wakes those who wait for it. */
export class LedgerProgress {
  #now: Progress;
  readonly #changed = new Set<() => void>();

  constructor(start: Progress) {
    this.#now = start;
  }

  /** Where the ledger stands. */
  get now(): Progress {
    return this.#now;
  }

  /** Adds what just became durable. */
  add(more: Progress): void {
    this.#now = {
      attempts: this.#now.attempts + more.attempts,
      applied: this.#now.applied + more.applied,
      settled: this.#now.settled + more.settled,
    };
    for (const check of this.#changed) check();
  }

  /** Resolves with true once every count is reached, with false when `signal` aborts first. */
  async reach(goal: Progress, signal: AbortSignal): Promise<boolean> {
    const isReached = () =>
      this.#now.attempts >= goal.attempts && this.#now.applied >= goal.applied && this.#now.settled >= goal.settled;
    if (isReached() || signal.aborted) return isReached();
    await new Promise<void>((resolve) => {
      const check = () => {
        if (!isReached() && !signal.aborted) return;
        this.#changed.delete(check);
        signal.removeEventListener("abort", check);
        resolve();
      };
      this.#changed.add(check);
      signal.addEventListener("abort", check);
    });
    return isReached();
  }
}
