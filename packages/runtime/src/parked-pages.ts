import { MAX_MAILBOX_MESSAGES } from "@holdfast/protocol";
import type { CellHost, NodeServices } from "./cell-host.ts";
import { tryParked } from "./parked-message.ts";
import type { InboxMessage } from "./ports/index.ts";

interface Pass {
  /** Where the next page begins. */
  from: number;
  /** First copy that was set aside since the pass began. */
  end: number;
  /** The last page did not fill. */
  isAtEnd: boolean;
}

/**
 * What was set aside of one actor, offered again page by page, oldest first.
 *
 * Owns: how far it is. Does not own: what is done with the messages.
 *   P1 one page in memory, however many wait
 *   P2 a pass ends before what is set aside again meanwhile, so that it ends at all; unless something happens that frees that, too
 *   P3 nothing is offered twice in one pass: whoever wants everything again while one is under way lengthens it
 */
export class ParkedPages {
  readonly #key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;
  #pass: Pass | undefined;

  constructor(key: string, services: NodeServices, host: CellHost) {
    this.#key = key;
    this.#services = services;
    this.#host = host;
  }

  get isUnderWay(): boolean {
    return this.#pass !== undefined;
  }

  /** The next page, of a new pass when none is under way. @returns undefined when there is nothing more */
  async next(): Promise<readonly InboxMessage[] | undefined> {
    if (this.#pass?.isAtEnd === true) {
      this.#pass = undefined;
      return undefined;
    }
    const { log, codec, flow } = this.#services;
    const limit = flow.memory.isFull ? 1 : MAX_MAILBOX_MESSAGES;
    const page = await log.fetch("parked", this.#key, this.#pass?.from ?? 0, limit);
    if (this.#pass === undefined) this.#host.unparked(this.#key);
    const end = this.#pass?.end ?? Number.POSITIVE_INFINITY;
    const due = page.filter(({ seq }) => seq < end); // P2
    const last = due.at(-1);
    this.#pass =
      last === undefined
        ? undefined
        : { from: last.seq + 1, end, isAtEnd: page.length < limit || due.length < page.length };
    return last === undefined ? undefined : due.flatMap((message) => tryParked(codec, message) ?? []);
  }

  /** P3. */
  lengthen(): void {
    if (this.#pass === undefined) return;
    this.#host.unparked(this.#key);
    this.#pass = { ...this.#pass, end: Number.POSITIVE_INFINITY, isAtEnd: false };
  }

  /** A copy was stored. */
  setAside(seq: number): void {
    if (this.#pass !== undefined) this.#pass.end = Math.min(this.#pass.end, seq);
  }
}
