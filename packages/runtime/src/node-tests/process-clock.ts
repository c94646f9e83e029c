import type { Clock } from "../ports/index.ts";

/**
 * The clock of one simulated process: time goes on while the process is stopped, its callbacks do not run. A killed one never runs any more.
 *
 * Owns: what fell due while it was stopped. Does not own: the time.
 */
export class ProcessClock implements Clock {
  readonly #inner: Clock;
  #state: "running" | "stopped" | "dead" = "running";
  #due: (() => void)[] = [];
  #wallJumpMs = 0;

  constructor(inner: Clock) {
    this.#inner = inner;
  }

  monotonicMs(): number {
    return this.#inner.monotonicMs();
  }

  wallMs(): number {
    return this.#inner.wallMs() + this.#wallJumpMs;
  }

  /** Somebody sets this machine's wall clock. */
  jumpWall(ms: number): void {
    this.#wallJumpMs += ms;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    let isCancelled = false;
    const run = (): void => {
      if (isCancelled) return;
      if (this.#state === "running") callback();
      else this.#due.push(run);
    };
    const cancel = this.#inner.schedule(delayMs, run);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  stop(): void {
    if (this.#state === "running") this.#state = "stopped";
  }

  /** Everything that fell due meanwhile runs now. */
  resume(): void {
    if (this.#state !== "stopped") return;
    this.#state = "running";
    for (const run of this.#due.splice(0)) run();
  }

  kill(): void {
    this.#state = "dead";
    this.#due = [];
  }
}
