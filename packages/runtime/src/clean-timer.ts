import type { Limiter } from "./limiter.ts";
import type { Clock } from "./ports/index.ts";

/** As many actors in the middle of a step: the store is busy with what somebody waits for. */
const BUSY_STEPS = 16;
/** How often it gives way; after that it is written all the same, or an actor of a node that is never quiet would be work at every takeover. */
const MAX_TIMES_GIVEN_WAY = 10;

/**
 * When the outbox of an actor at rest is cleared: a write that nobody waits for, and that spares a later takeover work.
 *
 * Owns: its timer. Does not own: whether there is something to clear.
 *   Q1 gives way while the node steps many actors: after a takeover these writes were a quarter of all and delayed the work itself
 */
export class CleanTimer {
  readonly #clock: Clock;
  readonly #afterMs: number;
  readonly #stepping: Pick<Limiter, "active">;
  readonly #clean: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, afterMs: number, stepping: Pick<Limiter, "active">, clean: () => void) {
    this.#clock = clock;
    this.#afterMs = afterMs;
    this.#stepping = stepping;
    this.#clean = clean;
  }

  /** Starts it, from the beginning if it runs. */
  start(): void {
    this.#wait(0);
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #wait(timesGivenWay: number): void {
    this.cancel();
    this.#cancel = this.#clock.schedule(this.#afterMs, () => {
      if (this.#stepping.active >= BUSY_STEPS && timesGivenWay < MAX_TIMES_GIVEN_WAY) this.#wait(timesGivenWay + 1);
      else this.#clean();
    });
  }
}
