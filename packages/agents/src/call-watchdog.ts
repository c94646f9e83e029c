import type { ModelProblem } from "./model-problem.ts";

/** What a call is waiting for. */
export type WaitPhase = "connect" | "firstToken" | "idle";

/** Milliseconds a call may wait in each phase. */
export interface ModelTimeouts {
  /** From the request to the headers of the answer. */
  readonly connectMs: number;
  /** From the headers to the first token. */
  readonly firstTokenMs: number;
  /** From one token to the next. */
  readonly idleMs: number;
}

const WORDS: Readonly<Record<WaitPhase, { readonly field: keyof ModelTimeouts; readonly what: string }>> = {
  connect: { field: "connectMs", what: "did not begin to answer" },
  firstToken: { field: "firstTokenMs", what: "sent no first token" },
  idle: { field: "idleMs", what: "fell silent in the middle of its answer" },
};

/**
 * Aborts a call that waits too long.
 *
 * Owns: one timer. Does not own: the call; whoever made it stops the watchdog.
 *   W1 one phase at a time; entering a phase starts its time anew
 *   W2 after stop() the signal does not abort any more
 */
export class CallWatchdog {
  readonly #timeouts: ModelTimeouts;
  readonly #controller = new AbortController();
  #phase: WaitPhase = "connect";
  #timer: NodeJS.Timeout;
  #problem: ModelProblem | undefined;

  /** Starts in phase `connect`. */
  constructor(timeouts: ModelTimeouts) {
    this.#timeouts = timeouts;
    this.#timer = this.#start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Set once the signal aborted. */
  get problem(): ModelProblem | undefined {
    return this.#problem;
  }

  enter(phase: WaitPhase): void {
    if (phase === this.#phase) {
      this.#timer.refresh(); // W1; called per token
      return;
    }
    clearTimeout(this.#timer);
    this.#phase = phase;
    this.#timer = this.#start();
  }

  stop(): void {
    clearTimeout(this.#timer); // W2
  }

  #start(): NodeJS.Timeout {
    const { field, what } = WORDS[this.#phase];
    const limitMs = this.#timeouts[field];
    return setTimeout(() => {
      this.#problem = {
        code: "HF-5005",
        what: `${what} within ${limitMs} ms`,
        remedy: `Try again, or raise timeouts.${field}.`,
        retry: "backoff",
      };
      this.#controller.abort(new Error("The model took too long."));
    }, limitMs);
  }
}
