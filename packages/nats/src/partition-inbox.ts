// PartitionInbox: one partition's messages, and the proof that everything stored before some moment was handed over.
//
// Owns: how far the partition was handed over, the waits for it.
// Does not own: readers (ShardInbox starts them and gives it another one while messages come), cursors of actors.
//
//   B1  `readThrough` resolves only after the receiver returned from the newest message that the leader held when it was called
//   B2  after `stop` nothing is handed over and every wait has ended
//   B3  every message once, in order, whichever reader brings it: a reader that serves it has started at or before where it stands, so what
//       is at or below that has been handed over, and what is above has no gap before it
//   B4  whoever subscribed is told when it ends by itself
//
// Why the leader is asked instead of writing a barrier message: timers wait for this in normal running, so a stored barrier would add a
// write (class F: an fsync) per due timer, and barriers of a partition without traffic would pile up, since its cursor never passes them.
// Asking costs three reads of 0.25 ms, also where nothing matches. What makes barriers necessary for a scan, a consumer on a replica that is
// behind, does no harm here: the wait is for one sequence that the leader vouches for.

import { lastSeqOf, type Link, type OrderedReader } from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { InboxMessage, InboxSubscription } from "@holdfast/runtime/ports";

interface Wait {
  readonly seq: number;
  readonly done: () => void;
}

export interface PartitionInboxOptions {
  readonly partition: string;
  readonly stream: string;
  readonly filters: readonly string[];
  readonly fromSeq: number;
  readonly deliver: (message: InboxMessage) => void;
  /** It was read through for the first time: nothing old is in its way any more. */
  readonly caughtUp: () => void;
  /** `stop` was called. Resolves when its reader is no longer needed, or has ended. */
  readonly left: () => Promise<void>;
}

/** The newest message may be removed while it is waited for. */
const RECHECK_MS = 2000;

export class PartitionInbox implements InboxSubscription {
  readonly #link: Link;
  readonly #options: PartitionInboxOptions;
  readonly #waits = new Set<Wait>();
  readonly #ending = new AbortController();
  readonly #failed = new AbortController();
  #handedOver: number;
  #reader: OrderedReader | undefined;
  #isCaughtUp = false;

  constructor(link: Link, options: PartitionInboxOptions) {
    this.#link = link;
    this.#options = options;
    this.#handedOver = Math.max(1, options.fromSeq) - 1;
  }

  get partition(): string {
    return this.#options.partition;
  }

  get filters(): readonly string[] {
    return this.#options.filters;
  }

  get reader(): OrderedReader | undefined {
    return this.#reader;
  }

  get isCaughtUp(): boolean {
    return this.#isCaughtUp;
  }

  get isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  /** B4. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** From now on `reader` brings its messages (B3). */
  serveFrom(reader: OrderedReader): void {
    this.#reader = reader;
    const onEnd = (): void => {
      if (this.#reader !== reader) return;
      const reason: unknown = reader.ended.reason;
      if (reason instanceof RuntimeFault) this.fail(reason);
      else void this.stop(); // the connection was closed for good
    };
    if (reader.ended.aborted) onEnd();
    else reader.ended.addEventListener("abort", onEnd, { once: true });
  }

  /** A message of its partition. What the receiver throws ends this subscription and no other one. */
  take(message: InboxMessage): void {
    if (message.seq <= this.#handedOver || this.isOver) return; // B2, B3
    this.#handedOver = message.seq;
    try {
      this.#options.deliver(message);
    } catch (cause) {
      this.fail(receiverThrew(this.#options, message.seq, cause));
      return;
    }
    this.pass(message.seq); // B1
  }

  /** Its reader is past a message that there is nobody for. */
  pass(seq: number): void {
    for (const wait of this.#waits) if (wait.seq <= seq) wait.done();
  }

  /** Ends it by itself (B4). */
  fail(fault: RuntimeFault): void {
    if (this.isOver) return;
    this.#ending.abort();
    void this.#options.left();
    this.#failed.abort(fault);
  }

  /** @throws the reason of `signal`; RuntimeFault HF-3008 when the subscription ended, HF-4008 when the leader did not answer */
  async readThrough(signal: AbortSignal): Promise<void> {
    const ends = AbortSignal.any([signal, this.#ending.signal]);
    for (;;) {
      if (ends.aborted) throw this.#whyEnded(signal);
      const targetSeq = await this.#askLeader(ends, signal);
      if (await this.#reaches(targetSeq, ends)) break;
    }
    if (this.#isCaughtUp) return;
    this.#isCaughtUp = true;
    this.#options.caughtUp();
  }

  async stop(): Promise<void> {
    if (this.isOver) return;
    this.#ending.abort();
    await this.#options.left();
  }

  async #askLeader(ends: AbortSignal, signal: AbortSignal): Promise<number> {
    try {
      return await lastSeqOf(this.#link, this.#options.stream, this.#options.filters, ends);
    } catch (error) {
      throw ends.aborted ? this.#whyEnded(signal) : error;
    }
  }

  /** @returns false when the wait ended otherwise */
  #reaches(seq: number, ends: AbortSignal): Promise<boolean> {
    if (this.#through >= seq) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (reached: boolean): void => {
        this.#waits.delete(wait);
        clearTimeout(recheck);
        ends.removeEventListener("abort", onEnd);
        resolve(reached);
      };
      const wait: Wait = { seq, done: () => end(true) };
      const onEnd = (): void => end(false);
      const recheck = setTimeout(() => end(this.#through >= seq), RECHECK_MS);
      this.#waits.add(wait);
      ends.addEventListener("abort", onEnd, { once: true });
    });
  }

  /** A reader in order that is past a sequence has handed over whatever it had for us below it. */
  get #through(): number {
    return Math.max(this.#handedOver, this.#reader?.cursor ?? 0);
  }

  /** What a wait that cannot go on rejects with: the caller's own reason, or that the subscription ended. */
  #whyEnded(signal: AbortSignal): Error {
    if (signal.aborted && signal.reason instanceof Error) return signal.reason;
    const { partition, stream } = this.#options;
    return new RuntimeFault(
      "HF-3008",
      `Inbox of ${partition} in ${stream}: expected to read on, it was stopped. Subscribe again.`,
      { facts: { partition, stream } },
    );
  }
}

function receiverThrew({ partition, stream }: PartitionInboxOptions, seq: number, cause: unknown): RuntimeFault {
  return new RuntimeFault(
    "HF-4001",
    `Inbox of ${partition} in ${stream}: its receiver threw at sequence ${seq}. Mend the receiver; reading has stopped.`,
    { cause, facts: { partition, stream, seq } },
  );
}
