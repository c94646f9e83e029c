import type { StepMessage } from "@holdfast/durable";
import { MAX_MAILBOX_BYTES, MAX_MAILBOX_MESSAGES, type PlainEvent } from "@holdfast/protocol";
import type { InboxMessage, MessageLog } from "./ports/index.ts";

/** What an actor works off, one at a time. */
export type MailboxItem =
  | { readonly kind: "message"; readonly message: InboxMessage; readonly isReoffered: boolean }
  | { readonly kind: "timer"; readonly timer: string; readonly gen: string }
  | { readonly kind: "host"; readonly childKey: string; readonly event: PlainEvent }
  | { readonly kind: "settled"; readonly step: Extract<StepMessage, { kind: "settled" }> }
  | {
      readonly kind: "mark";
      readonly childId: string;
      readonly attempt: number;
      readonly stored: (isStored: boolean) => void;
    }
  | { readonly kind: "ensureJobs" }
  | { readonly kind: "rehydrate"; readonly done: () => void }
  | { readonly kind: "clean" };

/**
 * Messages of one actor that wait in memory.
 *
 * Owns: the queue and where it was cut off. Does not own: the stream.
 *   M1 bounded: beyond the limit only the sequence to go on from is kept, and the rest is fetched again by subject (F43)
 *   M2 stream order within the actor
 *   M3 a timer goes behind everything that was cut off before it came: an answer may be among it (F23)
 */
export class Mailbox {
  readonly #key: string;
  readonly #log: MessageLog;
  readonly #items: MailboxItem[] = [];
  #head = 0;
  #bytes = 0;
  #messages = 0;
  #overflowFrom: number | undefined;
  #behindOverflow: MailboxItem[] = [];
  #lastSeq = 0;
  #newestOffered = 0;

  constructor(key: string, log: MessageLog) {
    this.#key = key;
    this.#log = log;
  }

  get isEmpty(): boolean {
    return this.#head >= this.#items.length && this.#overflowFrom === undefined;
  }

  get hasOverflow(): boolean {
    return this.#overflowFrom !== undefined;
  }

  /** Takes a message of the stream, or remembers where to fetch it from (M1). */
  offer(message: InboxMessage): void {
    this.#newestOffered = Math.max(this.#newestOffered, message.seq);
    if (this.#overflowFrom !== undefined) return;
    if (this.#messages >= MAX_MAILBOX_MESSAGES || this.#bytes + message.bytes.length > MAX_MAILBOX_BYTES) {
      this.#overflowFrom = message.seq;
      return;
    }
    this.#add(message);
  }

  push(item: MailboxItem): void {
    if (item.kind === "timer" && this.#overflowFrom !== undefined) this.#behindOverflow.push(item);
    else this.#items.push(item);
  }

  next(): MailboxItem | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head += 1;
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    if (item.kind === "message" && !item.isReoffered) {
      this.#messages -= 1;
      this.#bytes -= item.message.bytes.length;
    }
    return item;
  }

  putBack(item: MailboxItem): void {
    if (this.#head > 0) {
      this.#head -= 1;
      this.#items[this.#head] = item;
    } else this.#items.unshift(item);
    if (item.kind === "message" && !item.isReoffered) {
      this.#messages += 1;
      this.#bytes += item.message.bytes.length;
    }
  }

  /** Older than everything that waits: messages that had been set aside. */
  putFront(items: readonly MailboxItem[]): void {
    this.#items.splice(this.#head, 0, ...items);
  }

  /** Fetches what was cut off. @returns true when something came */
  async refill(): Promise<boolean> {
    const from = this.#overflowFrom;
    if (from === undefined) return false;
    const messages = await this.#log.fetch("inbox", this.#key, from, MAX_MAILBOX_MESSAGES);
    for (const message of messages) this.#add(message);
    // What was offered while we fetched was not kept: only when the fetch reached the newest of it have we caught up (M2).
    this.#overflowFrom = this.#lastSeq >= this.#newestOffered ? undefined : Math.max(from, this.#lastSeq + 1);
    if (this.#overflowFrom === undefined) this.#items.push(...this.#behindOverflow.splice(0)); // M3
    return messages.length > 0;
  }

  #add(message: InboxMessage): void {
    if (message.seq <= this.#lastSeq) return; // fetched and delivered
    this.#lastSeq = message.seq;
    this.#messages += 1;
    this.#bytes += message.bytes.length;
    this.#items.push({ kind: "message", message, isReoffered: false });
  }
}
