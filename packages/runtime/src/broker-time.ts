import type { Clock } from "./ports/index.ts";

/**
 * Broker time on this node: the wall clock plus an offset learnt from the server's timestamps of one's own heartbeat writes.
 *
 * Owns: the offset and the floor. Does not own: when heartbeats are written.
 *   B1 never goes back (F37)
 *   B2 a sample counts half of its round trip as the way there
 */
export class BrokerTime {
  readonly #clock: Clock;
  #offsetMs: number | undefined;
  #floorMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param sentAtMs  wall clock when the write was sent @param storedAtMs  server timestamp of the write */
  sample(sentAtMs: number, storedAtMs: number): void {
    const now = this.#clock.wallMs();
    this.#offsetMs = storedAtMs - (sentAtMs + (now - sentAtMs) / 2); // B2
  }

  /** Difference to the wall clock, ms; undefined before the first heartbeat. */
  get offsetMs(): number | undefined {
    return this.#offsetMs;
  }

  /** The time of a stored lease or message: ours is never earlier than what we have seen. */
  raiseTo(ms: number): void {
    if (ms > this.#floorMs) this.#floorMs = ms;
  }

  nowMs(): number {
    const now = Math.floor(this.#clock.wallMs() + (this.#offsetMs ?? 0));
    if (now > this.#floorMs) this.#floorMs = now; // B1
    return this.#floorMs;
  }
}
