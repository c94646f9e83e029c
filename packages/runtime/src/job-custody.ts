/**
 * Which jobs of one partition still run on the node that gave it away (F22).
 *
 * Owns: what was seen at the last look. Does not own: the heartbeats that tell it.
 */
export class JobCustody {
  readonly #isElsewhere: (jobKey: string, runner: string | undefined) => boolean;
  readonly #seen = new Set<string>();

  constructor(isElsewhere: (jobKey: string, runner: string | undefined) => boolean) {
    this.#isElsewhere = isElsewhere;
  }

  /** True once more after custody ended: the outcome was stored before that, and the next look comes after a read through. */
  holds(jobKey: string, runner: string | undefined): boolean {
    const wasElsewhere = this.#seen.delete(jobKey);
    const isElsewhere = this.#isElsewhere(jobKey, runner);
    if (isElsewhere) this.#seen.add(jobKey);
    return isElsewhere || wasElsewhere;
  }
}
