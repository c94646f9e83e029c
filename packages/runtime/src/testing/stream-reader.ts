// StreamReader — an ordered consumer: hands over the messages of a stream that fit, one per turn.
// Owns: its cursor.  Does not own: the messages, the connection it reads over.
//   R1 order      ascending sequences, nothing left out that is stored when the cursor passes; a value that was replaced before is gone
//   R2 later      never delivers inside the call that stored the message
//   R3 resumes    a broken or paused connection stops the cursor, it never moves it
import type { MemoryStream, Matches, StreamMessage } from "./memory-stream.ts";
import type { NodeLink } from "./node-link.ts";

export interface StreamReaderOptions {
  readonly stream: MemoryStream;
  readonly link: NodeLink;
  readonly fromSeq: number;
  readonly matches: Matches;
  /** Must not throw: what it throws ends the reader as an unhandled rejection. */
  readonly deliver: (message: StreamMessage) => void;
}

/** See the invariants at the top of the file. */
export class StreamReader {
  readonly #options: StreamReaderOptions;
  readonly #unlisten: () => void;
  #cursor: number;
  #pumping = false;
  #stopped = false;
  #waiters: readonly { readonly seq: number; readonly resolve: () => void }[] = [];

  constructor(options: StreamReaderOptions) {
    this.#options = options;
    this.#cursor = options.fromSeq;
    this.#unlisten = options.stream.onStored(() => this.#wake());
    this.#wake();
  }

  /** Resolves when everything up to `seq` was handed over or is gone. Never after `stop`. */
  handedOver(seq: number): Promise<void> {
    if (this.#cursor > seq) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters = [...this.#waiters, { seq, resolve }];
    });
  }

  /** Nothing is delivered after it returns. */
  stop(): void {
    this.#stopped = true;
    this.#unlisten();
  }

  #wake(): void {
    if (this.#pumping || this.#stopped) return;
    this.#pumping = true;
    void this.#pump();
  }

  async #pump(): Promise<void> {
    for (;;) {
      await this.#options.link.receivable(); // R2, R3
      if (this.#stopped) return;
      const message = this.#options.stream.next(this.#cursor, this.#options.matches);
      if (message === undefined) break;
      this.#handOver(message);
    }
    this.#cursor = Math.max(this.#cursor, this.#options.stream.lastSeq + 1);
    this.#settleWaiters();
    this.#pumping = false;
  }

  #handOver(message: StreamMessage): void {
    this.#options.deliver({ ...message, bytes: new Uint8Array(message.bytes) });
    if (this.#options.link.dice.hits("duplicateDeliveryRate") && !this.#stopped) {
      this.#options.deliver({ ...message, bytes: new Uint8Array(message.bytes) });
    }
    this.#cursor = message.seq + 1;
    this.#settleWaiters();
  }

  #settleWaiters(): void {
    for (const waiter of this.#waiters) if (waiter.seq < this.#cursor) waiter.resolve();
    this.#waiters = this.#waiters.filter((waiter) => waiter.seq >= this.#cursor);
  }
}
