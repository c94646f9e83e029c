import type { Codec } from "@holdfast/codec";
import { serverTimeMs, watchBucket, type KvValue, type Link } from "@holdfast/jetstream";
import { RuntimeFault, toPlainFault, type Manifest, type PlainEvent, type Subjects } from "@holdfast/protocol";
import type { SendOptions, SendResult } from "../message-sender.ts";
import { WaitChanges, type WaitChange } from "./wait-changes.ts";
import { fitsWait, type WaitFilter } from "./wait-filter.ts";
import { waitRowOf, type WaitRow } from "./wait-row.ts";

/** What somebody says to a question; `value` is absent for `accept` and `reject`. */
export interface WaitAnswer {
  readonly answerId: string;
  readonly action?: "accept" | "edit" | "respond" | "reject";
  readonly value?: unknown;
  readonly reason?: string;
}

/** What became of one answer of several. */
export type BatchResult =
  | { readonly id: string; readonly result: SendResult }
  | { readonly id: string; readonly fault: { readonly code: string; readonly message: string } };

export interface WaitDeskOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly subjects: Subjects;
  readonly manifest: () => Manifest;
  /** Key by id. */
  readonly keyOf: (id: string) => string;
  readonly exists: (key: string) => Promise<boolean>;
  readonly send: (key: string, event: PlainEvent, options?: SendOptions) => Promise<SendResult>;
}

const KEYS = "*.ownerWait.*";
/** Answers of a batch that are on their way at the same time. */
const BATCH_AT_ONCE = 16;

/**
 * Questions to people: what is open for whom, and what people say to them. Reads what is stored; no node is asked.
 *
 *   I1 a question is found by one reading of the records of its type, whatever else there is
 *   I2 who watches sees every question that fits, then every change of one, the last one of each at least
 */
export class WaitDesk {
  readonly #options: WaitDeskOptions;

  constructor(options: WaitDeskOptions) {
    this.#options = options;
  }

  /** Questions that fit, the oldest first. Those that cannot be read here are left out. */
  async list(filter: WaitFilter = {}): Promise<readonly WaitRow[]> {
    const nowMs = await this.#nowMs();
    const rows = new Map<string, WaitRow>();
    const readers = await this.#read((row) => rows.set(row.key, row), { onFault: () => undefined });
    await Promise.all(readers.map((reader) => reader.stop()));
    return [...rows.values()]
      .filter((row) => fitsWait(row, filter, nowMs))
      .toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.key < b.key ? -1 : 1));
  }

  /**
   * Questions that fit, then what changes about them, until `signal` aborts (I2). Time alone is no change: a filter by age or expiry is not taken.
   * @throws RuntimeFault HF-4006, HF-4007, HF-4008 while it is iterated
   */
  async *watch(
    filter: Omit<WaitFilter, "olderThanMs" | "expiresWithinMs"> = {},
    signal: AbortSignal = new AbortController().signal,
  ): AsyncGenerator<WaitChange, void> {
    const changes = new WaitChanges();
    const ended = new AbortController();
    const fault: { found?: RuntimeFault } = {};
    const readers = await this.#read((row) => changes.note(row, fitsWait(row, filter, 0)), {
      onFault: (found) => {
        fault.found ??= found;
        ended.abort();
      },
      signal,
    });
    const over = AbortSignal.any([signal, ended.signal]);
    over.addEventListener("abort", () => changes.wake(), { once: true });
    try {
      while (!over.aborted) {
        for (let next = changes.take(); next !== undefined && !signal.aborted; next = changes.take()) yield next;
        if (!over.aborted) await changes.more();
      }
      if (fault.found !== undefined && !signal.aborted) throw fault.found;
    } finally {
      await Promise.all(readers.map((reader) => reader.stop()));
    }
  }

  /** Answers a question; one id is taken once. @throws RuntimeFault HF-3001 when there is none, also of what follows */
  answer(id: string, answer: WaitAnswer, options?: SendOptions): Promise<SendResult> {
    return this.#say(id, { type: "answer", ...answer }, options);
  }

  /** Settles a question without an answer. */
  decline(id: string, { answerId, reason }: { readonly answerId: string; readonly reason?: string | undefined }) {
    return this.#say(id, { type: "decline", answerId, ...(reason !== undefined && { reason }) });
  }

  /** Takes a reply of one's own back, as long as whoever asked has not begun to take it in. */
  revoke(id: string, answerId: string): Promise<SendResult> {
    return this.#say(id, { type: "revoke", answerId });
  }

  /** Withdraws a question that is open. */
  cancel(id: string, reason?: string): Promise<SendResult> {
    return this.#say(id, { type: "cancel", ...(reason !== undefined && { reason }) });
  }

  /** Asks somebody else instead. @param from  of several approvers the one who is not asked any more; default: the sender */
  reassign(
    id: string,
    to: { readonly assignee: string } | { readonly role: string },
    from?: string,
  ): Promise<SendResult> {
    return this.#say(id, { type: "reassign", to, ...(from !== undefined && { from }) });
  }

  /** Several answers, each judged by itself: what becomes of one says nothing of the others. In the order in which they were given. */
  async answerAll(answers: readonly (WaitAnswer & { readonly id: string })[]): Promise<readonly BatchResult[]> {
    const results: BatchResult[] = [];
    for (let at = 0; at < answers.length; at += BATCH_AT_ONCE) {
      const batch = answers.slice(at, at + BATCH_AT_ONCE).map(async ({ id, ...answer }): Promise<BatchResult> => {
        try {
          return { id, result: await this.answer(id, answer) };
        } catch (error) {
          const { code, message } = toPlainFault(error, "HF-4008");
          return { id, fault: { code, message } };
        }
      });
      results.push(...(await Promise.all(batch)));
    }
    return results;
  }

  async #say(id: string, event: PlainEvent, options?: SendOptions): Promise<SendResult> {
    const { keyOf, exists, send } = this.#options;
    const key = keyOf(id);
    if (await exists(key)) return send(key, event, options);
    throw new RuntimeFault("HF-3001", `Question ${id}: there is none. "holdfast wait list --all" shows all.`);
  }

  async #nowMs(): Promise<number> {
    const { link, subjects } = this.#options;
    return (await serverTimeMs(link, `KV_${subjects.fleetBucket}`)) ?? Date.now();
  }

  /** I1. Resolves once everything that is stored was handed over. */
  async #read(
    found: (row: WaitRow) => void,
    { onFault, signal }: { readonly onFault: (fault: RuntimeFault) => void; readonly signal?: AbortSignal },
  ) {
    const { link, codec, subjects, manifest } = this.#options;
    const deliver = ({ bytes, removed }: KvValue): void => {
      const row = removed ? undefined : tryRow(codec, bytes);
      if (row !== undefined) found(row);
    };
    const shards = Array.from({ length: manifest().shards }, (_, shard) => subjects.actorsBucket(shard));
    return Promise.all(
      shards.map((bucket) => watchBucket(link, { bucket, keys: KEYS, deliver, onFault, ...(signal && { signal }) })),
    );
  }
}

/** A record that this build cannot read is somebody else's to show. */
function tryRow(codec: Codec, bytes: Uint8Array): WaitRow | undefined {
  try {
    const { header, record } = codec.decodeRecord(bytes);
    return waitRowOf(header, record);
  } catch {
    return undefined;
  }
}
