import type { InboxMessage, InboxSubscription, MessageLog, PublishOutcome } from "../ports/index.ts";
import { untilAborted } from "../testing/until-aborted.ts";

/**
 * A message log whose consumers can be made to lag behind, as they do on a replica, while everything else of its node goes on.
 *
 * Owns: what has been read but not handed over. Does not own: the log.
 */
export class GatedLog implements MessageLog {
  readonly #inner: MessageLog;
  #isSlow = false;
  #waiting: (() => void)[] = [];

  constructor(inner: MessageLog) {
    this.#inner = inner;
  }

  lag(): void {
    this.#isSlow = true;
  }

  goOn(): void {
    this.#isSlow = false;
    for (const pass of this.#waiting.splice(0)) pass();
  }

  publish(...request: Parameters<MessageLog["publish"]>): Promise<PublishOutcome> {
    return this.#inner.publish(...request);
  }

  async subscribe(
    partition: string,
    fromSeq: number,
    deliver: (message: InboxMessage) => void,
  ): Promise<InboxSubscription> {
    const inner = await this.#inner.subscribe(partition, fromSeq, (message) => this.#pass(() => deliver(message)));
    return {
      readThrough: async (signal) => {
        await inner.readThrough(signal);
        await untilAborted(signal, new Promise<void>((resolve) => this.#pass(resolve)));
      },
      stop: () => inner.stop(),
    };
  }

  fetch(...request: Parameters<MessageLog["fetch"]>): Promise<readonly InboxMessage[]> {
    return this.#inner.fetch(...request);
  }

  position(partition: string): Promise<{ readonly generation: string; readonly lastSeq: number }> {
    return this.#inner.position(partition);
  }

  trim(...request: Parameters<MessageLog["trim"]>): Promise<void> {
    return this.#inner.trim(...request);
  }

  #pass(hand: () => void): void {
    if (this.#isSlow) this.#waiting.push(hand);
    else hand();
  }
}
