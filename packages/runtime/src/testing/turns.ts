/**
 * Macrotask turns: what takes time in a broker takes turns here, so nothing is ever answered inside the call that asked.
 * Equal delays end in the order in which they began, which makes a run repeatable.
 */
export class Turns {
  #outstanding = 0;

  /** Nobody waits for a turn: whatever is pending waits for something from outside. */
  get isQuiet(): boolean {
    return this.#outstanding === 0;
  }

  /** Resolves `count` macrotasks later. */
  next(count = 1): Promise<void> {
    this.#outstanding += 1;
    return new Promise((resolve) => {
      const step = (left: number): void => {
        if (left > 0) {
          setImmediate(() => step(left - 1));
          return;
        }
        this.#outstanding -= 1;
        resolve();
      };
      step(count);
    });
  }
}
