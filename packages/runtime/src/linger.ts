import type { Clock } from "./ports/index.ts";

/**
 * A common wait of many: whoever is in it is called back at the next tick, all in one turn of the event loop, so that what they send
 * leaves in one write to the socket. With a timer each, every journal entry was a write of its own.
 *
 * Owns: one timer. Does not own: what is done then.
 */
export class Linger {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #waiting = new Set<() => void>();
  #isArmed = false;

  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  /** @returns cancels it */
  wait(callback: () => void): () => void {
    this.#waiting.add(callback);
    if (!this.#isArmed) {
      this.#isArmed = true;
      this.#clock.schedule(this.#tickMs, () => this.#tick());
    }
    return () => void this.#waiting.delete(callback);
  }

  #tick(): void {
    this.#isArmed = false;
    const due = [...this.#waiting];
    this.#waiting.clear();
    for (const callback of due) callback();
  }
}
