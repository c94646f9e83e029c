/** Keys of one partition that are remembered; beyond, the watch looks at these first and at the others when there is room again. */
const REMEMBERED = 10_000;

/**
 * Actors of one partition whose records ask for no work, and which should be looked at all the same: something has to come to them from
 * elsewhere. A hint, told by headers: whoever follows it reads the record.
 *
 * Owns: their keys. Does not own: what a record waits for (`judgeActor`).
 */
export class RestingActors {
  readonly #seqs = new Map<string, number>();
  /** Every record of the partition was looked at since its owner took it. */
  isComplete = false;

  /** A record was read or written. */
  seen(key: string, seq: number, waits: boolean): void {
    if ((this.#seqs.get(key) ?? 0) > seq) return;
    if (!waits) this.#seqs.delete(key);
    else if (this.#seqs.has(key) || this.#seqs.size < REMEMBERED) this.#seqs.set(key, seq);
  }

  keys(): IterableIterator<string> {
    return this.#seqs.keys();
  }
}
