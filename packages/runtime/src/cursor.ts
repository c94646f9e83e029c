/**
 * Which messages of one partition have been considered.
 *
 * Owns: the set of delivered but unconsidered sequences. Does not own: storing the cursor (the lease does).
 *   C1 the cursor is the lowest sequence not yet considered; it never waits for anything but consideration (F10)
 */
export class Cursor {
  readonly #pending = new Set<number>();
  #highest: number;

  /** @param from  first sequence that was not considered by the former owner */
  constructor(from: number) {
    this.#highest = from - 1;
  }

  delivered(seq: number): void {
    this.#pending.add(seq); // delivery is ordered, so the first element is the lowest
    if (seq > this.#highest) this.#highest = seq;
  }

  /** Everything of this partition up to a sequence of its stream was delivered, if there was anything. */
  readThrough(seq: number): void {
    if (seq > this.#highest) this.#highest = seq;
  }

  considered(seq: number): void {
    this.#pending.delete(seq);
  }

  get pending(): number {
    return this.#pending.size;
  }

  get highest(): number {
    return this.#highest;
  }

  /** Where a successor must start reading. */
  get next(): number {
    const lowest = this.#pending.values().next();
    return lowest.done === true ? this.#highest + 1 : lowest.value;
  }
}
