// InboxReader: one partition's messages, and the proof that everything stored before some moment was handed over.
//
// Owns: an OrderedReader, the waits for it.  Does not own: cursors of actors.
//
//   B1  `readThrough` resolves only after the receiver returned from the newest message that the leader held when it was called
//   B2  after `stop` nothing is handed over and every wait has ended
//
// Why the leader is asked instead of writing a barrier message: timers wait for this in normal running, so a stored barrier would add a
// write (class F: an fsync) per due timer, and barriers of a partition without traffic would pile up, since its cursor never passes them.
// Asking costs three reads of 0.25 ms, also where nothing matches. What makes barriers necessary for a scan, a consumer on a replica that is
// behind, does no harm here: the wait is for one sequence that the leader vouches for.

import { lastSeqOf, OrderedReader, type Link, type OrderedReaderOptions } from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { InboxSubscription } from "@holdfast/runtime/ports";

interface Wait {
  readonly seq: number;
  readonly done: () => void;
}

/** The newest message may be removed while it is waited for. */
const RECHECK_MS = 2000;

export class InboxReader implements InboxSubscription {
  readonly #link: Link;
  readonly #options: OrderedReaderOptions;
  readonly #waits: Set<Wait>;
  readonly #reader: OrderedReader;

  private constructor(link: Link, options: OrderedReaderOptions, waits: Set<Wait>, reader: OrderedReader) {
    this.#link = link;
    this.#options = options;
    this.#waits = waits;
    this.#reader = reader;
  }

  /** @throws as OrderedReader.start */
  static async start(link: Link, options: OrderedReaderOptions): Promise<InboxReader> {
    const waits = new Set<Wait>();
    const reader = await OrderedReader.start(link, {
      ...options,
      deliver: (message) => {
        options.deliver(message);
        for (const wait of waits) if (wait.seq <= message.seq) wait.done(); // B1
      },
    });
    return new InboxReader(link, options, waits, reader);
  }

  /** @throws the reason of `signal`; RuntimeFault HF-3008 when the subscription ended, HF-4008 when the leader did not answer */
  async readThrough(signal: AbortSignal): Promise<void> {
    const ends = AbortSignal.any([signal, this.#reader.ended]);
    for (;;) {
      if (ends.aborted) throw this.#ended(signal);
      const targetSeq = await this.#askLeader(ends, signal);
      if (await this.#handedOver(targetSeq, ends)) return;
    }
  }

  stop(): Promise<void> {
    return this.#reader.stop();
  }

  async #askLeader(ends: AbortSignal, signal: AbortSignal): Promise<number> {
    try {
      return await lastSeqOf(this.#link, this.#options.stream, this.#options.filters, ends);
    } catch (error) {
      throw ends.aborted ? this.#ended(signal) : error;
    }
  }

  /** @returns false when the wait ended otherwise */
  #handedOver(seq: number, ends: AbortSignal): Promise<boolean> {
    if (this.#reader.cursor >= seq) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (reached: boolean): void => {
        this.#waits.delete(wait);
        clearTimeout(recheck);
        ends.removeEventListener("abort", onEnd);
        resolve(reached);
      };
      const wait: Wait = { seq, done: () => end(true) };
      const onEnd = (): void => end(false);
      const recheck = setTimeout(() => end(this.#reader.cursor >= seq), RECHECK_MS);
      this.#waits.add(wait);
      ends.addEventListener("abort", onEnd, { once: true });
    });
  }

  /** What a wait that cannot go on rejects with: the caller's own reason, or that the subscription ended. */
  #ended(signal: AbortSignal): Error {
    if (signal.aborted && signal.reason instanceof Error) return signal.reason;
    return new RuntimeFault(
      "HF-3008",
      `Inbox reader of ${this.#options.stream}: expected to read on, it was stopped. Subscribe again.`,
      { facts: { stream: this.#options.stream } },
    );
  }
}
