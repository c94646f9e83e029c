import type { StepMessage } from "@holdfast/durable";
import { MAX_MAILBOX_BYTES, MAX_MAILBOX_MESSAGES, type PlainEvent } from "@holdfast/protocol";
import type { TypeLimits } from "./actor-definition.ts";
import type { JobTurn } from "./cell-host.ts";
import type { JobAttempt } from "./job-table.ts";
import { MESSAGE_BYTES, type MemoryBudget } from "./memory-budget.ts";
import type { InboxMessage, MessageLog } from "./ports/index.ts";

/** What an actor works off, one at a time. */
export type MailboxItem =
  | { readonly kind: "message"; readonly message: InboxMessage; readonly isReoffered: boolean }
  | { readonly kind: "timer"; readonly timer: string; readonly gen: string }
  | { readonly kind: "host"; readonly childKey: string; readonly event: PlainEvent }
  | { readonly kind: "settled"; readonly step: Extract<StepMessage, { kind: "settled" }> }
  | { readonly kind: "job"; readonly turn: JobTurn; readonly ready: (attempt: JobAttempt | undefined) => void }
  | { readonly kind: "ensureJobs" }
  | { readonly kind: "rehydrate"; readonly isAnew: boolean; readonly done: () => void }
  | { readonly kind: "clean" }
  /** More of what was set aside. */
  | { readonly kind: "reoffer" };

/** Somebody waits for this item, which will not be worked off. */
export function endWait(item: MailboxItem): void {
  if (item.kind === "rehydrate") item.done();
  else if (item.kind === "job") item.ready(undefined);
}

/**
 * Messages of one actor that wait in memory.
 *
 * Owns: the queue and where it was cut off. Does not own: the stream.
 *   M1 bounded: beyond the limit only the sequence to go on from is kept, and the rest is fetched again by subject (F43)
 *   M2 stream order within the actor
 *   M4 every message that waits is in the account of the node
 *   M3 a timer goes behind everything that was cut off before it came: an answer may be among it (F23)
 */
export class Mailbox {
  readonly #key: string;
  readonly #log: MessageLog;
  readonly #memory: MemoryBudget;
  readonly #maxMessages: number;
  readonly #maxBytes: number;
  readonly #items: MailboxItem[] = [];
  #head = 0;
  #bytes = 0;
  #messages = 0;
  #overflowFrom: number | undefined;
  #behindOverflow: MailboxItem[] = [];
  #lastSeq = 0;
  #newestOffered = 0;
  #largest = 1;

  constructor(key: string, log: MessageLog, memory: MemoryBudget, limits: TypeLimits = {}) {
    this.#key = key;
    this.#log = log;
    this.#memory = memory;
    this.#maxMessages = limits.mailboxMessages ?? MAX_MAILBOX_MESSAGES;
    this.#maxBytes = limits.mailboxBytes ?? MAX_MAILBOX_BYTES;
  }

  get isEmpty(): boolean {
    return this.#head >= this.#items.length && this.#overflowFrom === undefined;
  }

  get hasOverflow(): boolean {
    return this.#overflowFrom !== undefined;
  }

  /** Takes a message of the stream, or remembers where to fetch it from (M1). */
  offer(message: InboxMessage): void {
    this.#largest = Math.max(this.#largest, message.bytes.length);
    this.#newestOffered = Math.max(this.#newestOffered, message.seq);
    if (this.#overflowFrom !== undefined) return;
    if (this.#isFull(message)) {
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
    this.#account(item, -1);
    return item;
  }

  putBack(item: MailboxItem): void {
    if (this.#head > 0) {
      this.#head -= 1;
      this.#items[this.#head] = item;
    } else this.#items.unshift(item);
    this.#account(item, 1);
  }

  /** Older than everything that waits: messages that had been set aside. */
  putFront(items: readonly MailboxItem[]): void {
    this.#items.splice(this.#head, 0, ...items);
    for (const item of items) this.#account(item, 1);
  }

  /** Fetches what was cut off. @returns true when something came */
  async refill(): Promise<boolean> {
    const from = this.#overflowFrom;
    if (from === undefined) return false;
    const messages = await this.#log.fetch("inbox", this.#key, from, this.#atOnce);
    for (const message of messages) {
      if (this.#isFull(message)) break;
      this.#add(message);
    }
    // What was offered while we fetched was not kept: only when the fetch reached the newest of it have we caught up (M2).
    this.#overflowFrom = this.#lastSeq >= this.#newestOffered ? undefined : Math.max(from, this.#lastSeq + 1);
    if (this.#overflowFrom === undefined) this.#items.push(...this.#behindOverflow.splice(0)); // M3
    return messages.length > 0;
  }

  /** Messages to fetch: as many as surely fit, and one at a time while the node holds too much (M1). */
  get #atOnce(): number {
    if (this.#memory.isFull) return 1;
    return Math.max(1, Math.min(this.#maxMessages, Math.floor(this.#maxBytes / this.#largest)));
  }

  #add(message: InboxMessage): void {
    if (message.seq <= this.#lastSeq) return; // fetched and delivered
    this.#lastSeq = message.seq;
    const item: MailboxItem = { kind: "message", message, isReoffered: false };
    this.#items.push(item);
    this.#account(item, 1);
  }

  /** An empty mailbox takes any message: one that is larger than the limit would never be taken otherwise. */
  #isFull({ bytes }: InboxMessage): boolean {
    if (this.#messages === 0) return false;
    return this.#messages >= this.#maxMessages || this.#bytes + bytes.length > this.#maxBytes;
  }

  /** M4. Messages that had been set aside were in the limits of the mailbox once; in memory they count all the same. */
  #account(item: MailboxItem, sign: 1 | -1): void {
    if (item.kind !== "message") return;
    const { length } = item.message.bytes;
    this.#memory.hold("mail", sign * (length + MESSAGE_BYTES));
    if (item.isReoffered) return;
    this.#messages += sign;
    this.#bytes += sign * length;
  }
}
