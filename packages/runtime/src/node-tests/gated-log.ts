import { RuntimeFault } from "@holdfast/protocol";
import type { InboxMessage, InboxPosition, InboxSubscription, MessageLog, PublishOutcome } from "../ports/index.ts";
import { untilAborted } from "../testing/until-aborted.ts";

/**
 * A message log whose consumers can be made to lag behind, as they do on a replica, whose reads can time out, and which loses what it had
 * acknowledged, as a server does that did not sync it, while everything else of its node goes on.
 *
 * Owns: what has been read but not handed over. Does not own: the log.
 */
export class GatedLog implements MessageLog {
  readonly #inner: MessageLog;
  #isSlow = false;
  #waiting: (() => void)[] = [];
  #failures = 0;
  /** Most messages that were read at once out of what was set aside. */
  largestParkedPage = 0;
  readonly #losses: { readonly key: string; count: number }[] = [];

  constructor(inner: MessageLog) {
    this.#inner = inner;
  }

  lag(): void {
    this.#isSlow = true;
  }

  /** Hands over what has waited, one after the other, with time in between for what each of them causes. */
  async goOn(): Promise<void> {
    for (let pass = this.#waiting.shift(); pass !== undefined; pass = this.#waiting.shift()) {
      pass();
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isSlow = false;
  }

  /** The next reads get no answer. */
  failReads(count: number): void {
    this.#failures = count;
  }

  /** The next inbox messages for a key are acknowledged, and then they are nowhere. */
  lose(key: string, count = 1): void {
    this.#losses.push({ key, count });
  }

  publish(...request: Parameters<MessageLog["publish"]>): Promise<PublishOutcome> {
    const [lane, key] = request;
    const loss = this.#losses.find((each) => lane === "inbox" && each.key === key && each.count > 0);
    if (loss === undefined) return this.#inner.publish(...request);
    loss.count -= 1;
    return Promise.resolve({ kind: "accepted", seq: 0, duplicate: false });
  }

  async subscribe(
    partition: string,
    fromSeq: number,
    deliver: (message: InboxMessage) => void,
  ): Promise<InboxSubscription> {
    const inner = await this.#inner.subscribe(partition, fromSeq, (message) => this.#pass(() => deliver(message)));
    return {
      readThrough: async (signal) => {
        this.#mayFail();
        await inner.readThrough(signal);
        await untilAborted(signal, new Promise<void>((resolve) => this.#pass(resolve)));
      },
      failed: inner.failed,
      stop: () => inner.stop(),
    };
  }

  async fetch(...request: Parameters<MessageLog["fetch"]>): Promise<readonly InboxMessage[]> {
    this.#mayFail();
    const found = await this.#inner.fetch(...request);
    const [lane, key] = request;
    if (lane === "parked" && !key.endsWith(">"))
      this.largestParkedPage = Math.max(this.largestParkedPage, found.length);
    return found;
  }

  position(partition: string): Promise<InboxPosition> {
    return this.#inner.position(partition);
  }

  trim(...request: Parameters<MessageLog["trim"]>): Promise<void> {
    return this.#inner.trim(...request);
  }

  #mayFail(): void {
    if (this.#failures === 0) return;
    this.#failures -= 1;
    throw new RuntimeFault("HF-4008", "Read of the log: expected an answer, got none. Try again.");
  }

  #pass(hand: () => void): void {
    if (this.#isSlow) this.#waiting.push(hand);
    else hand();
  }
}
