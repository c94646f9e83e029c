import type { Codec } from "@holdfast/codec";
import type { Link } from "@holdfast/jetstream";
import type { MessageOutcome } from "@holdfast/protocol";

interface Wait {
  dueAtMs: number;
  readonly settle: (outcome: MessageOutcome | undefined) => void;
}

/** How late a wait may end, ms: one clock for all of them costs less than a timer for each. */
const SWEEP_MS = 25;

/**
 * Answers of actors to the messages of one client.
 *
 * Owns: one subscription and who waits for which id. Does not own: retries.
 */
export class ReplyInbox {
  readonly subject: string;
  readonly #waiting = new Map<string, Wait>();
  readonly #stop: () => void;
  #sweep: ReturnType<typeof setInterval> | undefined;

  constructor(link: Link, codec: Pick<Codec, "decodeReply">) {
    this.subject = link.newInbox();
    this.#stop = link.subscribe(this.subject, ({ bytes }) => {
      const reply = codec.decodeReply(bytes);
      const wait = this.#waiting.get(reply.id);
      if (wait !== undefined) this.#end(reply.id, wait, reply.outcome);
    });
  }

  /** Resolves with the outcome of a message, or undefined after `timeoutMs`. Later answers are dropped. */
  wait(
    id: string,
    timeoutMs: number,
  ): { readonly outcome: Promise<MessageOutcome | undefined>; extend(ms: number): void } {
    let extend = (_ms: number): void => undefined;
    const outcome = new Promise<MessageOutcome | undefined>((settle) => {
      const wait: Wait = { dueAtMs: performance.now() + timeoutMs, settle };
      this.#waiting.set(id, wait);
      this.#sweep ??= setInterval(() => this.#endOverdue(), SWEEP_MS);
      extend = (ms) => {
        wait.dueAtMs = performance.now() + ms;
      };
    });
    return { outcome, extend };
  }

  /** Everybody who still waits is told that no answer came. */
  close(): void {
    this.#stop();
    for (const [id, wait] of this.#waiting) this.#end(id, wait, undefined);
    this.#endOverdue();
  }

  #endOverdue(): void {
    const nowMs = performance.now();
    for (const [id, wait] of this.#waiting) if (wait.dueAtMs <= nowMs) this.#end(id, wait, undefined);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  #end(id: string, wait: Wait, outcome: MessageOutcome | undefined): void {
    this.#waiting.delete(id);
    wait.settle(outcome);
  }
}
