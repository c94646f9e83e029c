import type { Clock } from "./ports/index.ts";

/**
 * Broker time on this node: the monotonic clock plus an offset learnt from the server's timestamps of one's own heartbeat writes.
 * The wall clock of the machine is not asked: somebody may set it.
 *
 * Owns: the offset and the floor. Does not own: when heartbeats are written.
 *   B1 never goes back (F37)
 *   B2 a sample counts half of its round trip as the way there
 *   B3 before the first sample the time is a guess, which nothing is built on: `isKnown` is false
 */
export class BrokerTime {
  readonly #clock: Clock;
  #offsetMs: number | undefined;
  #floorMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param sentAtMs  monotonic clock when the write was sent @param storedAtMs  server timestamp of the write */
  sample(sentAtMs: number, storedAtMs: number): void {
    const now = this.#clock.monotonicMs();
    this.#offsetMs = storedAtMs - (sentAtMs + (now - sentAtMs) / 2); // B2
  }

  get isKnown(): boolean {
    return this.#offsetMs !== undefined;
  }

  /** The time of a stored lease or message: ours is never earlier than what we have seen. */
  raiseTo(ms: number): void {
    if (ms > this.#floorMs) this.#floorMs = ms;
  }

  nowMs(): number {
    if (this.#offsetMs === undefined) return Math.max(this.#floorMs, Math.floor(this.#clock.wallMs())); // B3
    const now = Math.floor(this.#clock.monotonicMs() + this.#offsetMs);
    if (now > this.#floorMs) this.#floorMs = now; // B1
    return this.#floorMs;
  }
}
