export interface CutOffWorkOptions {
  /** Why it does not go on, for an operator. */
  readonly why: string;
  /** Everything is judged: told once. */
  readonly settled: () => void;
}

/**
 * Actors of one partition whose work a stop of the fleet may have cut off, until each was looked at.
 *
 * Owns: which of them were not looked at yet. Does not own: setting them aside (`holdCutOff`).
 *   K1 before the takeover has listed them every actor counts as one of them
 *   K2 who was looked at once is free: what it begins from then on, or an operator lets go on, is new
 *   K3 it is told only when all were looked at: a successor of an owner that died before looks at them again
 */
export class CutOffWork {
  readonly why: string;
  readonly #settled: () => void;
  #open: Set<string> | undefined;
  #isSettled = false;

  constructor({ why, settled }: CutOffWorkOptions) {
    this.why = why;
    this.#settled = settled;
  }

  /** The actors with work, as the takeover found them. */
  list(keys: Iterable<string>): void {
    this.#open ??= new Set(keys);
  }

  includes(key: string): boolean {
    return !this.#isSettled && (this.#open === undefined || this.#open.has(key)); // K1
  }

  /** K2. */
  judged(key: string): void {
    this.#open?.delete(key);
    this.#settleIfDone();
  }

  /** The takeover is through: what cannot be loaded here, or had nothing to do, is judged. */
  keepOnly(isStillOpen: (key: string) => boolean): void {
    for (const key of this.#open ?? []) if (!isStillOpen(key)) this.#open?.delete(key);
    this.#settleIfDone();
  }

  /** K3. */
  #settleIfDone(): void {
    if (this.#isSettled || this.#open === undefined || this.#open.size > 0) return;
    this.#isSettled = true;
    this.#settled();
  }
}
