// MemoryStream — one JetStream stream (or KV bucket) in memory, as strict as the real one.
// Owns: the messages, their sequences, the memory of message ids.  Does not own: who may reach it, and when (NodeLink).
//   M1 one sequence space   every subject of the stream counts in it; a sequence is never given twice, whatever is removed (but see `loseTail`)
//   M2 copies               bytes are copied in; whoever reads must copy out
//   M3 ids per stream       a message id is known whatever its subject, for the window, and is learnt again from stored messages only
//   M4 refusal over loss    a full stream refuses the new message and keeps the old ones

/** A stored message. `removed` marks a deleted key of a bucket. */
export interface StreamMessage {
  readonly seq: number;
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
  readonly messageId: string | undefined;
  readonly needsWork: boolean;
  readonly waits: boolean;
  readonly removed: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

export interface AppendRequest {
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly messageId?: string;
  readonly needsWork?: boolean;
  readonly waits?: boolean;
  readonly removed?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sequence of the subject's last message, be it a removal; 0: there is none. Unconditional when absent. */
  readonly expectedSeq?: number;
  /** Stores the message although its id is known, as after the end of the window. */
  readonly forgetId?: boolean;
}

export type AppendResult =
  | { readonly kind: "stored"; readonly seq: number; readonly storedAtMs: number }
  | { readonly kind: "duplicate"; readonly seq: number }
  | { readonly kind: "conflict"; readonly lastSeq: number }
  | { readonly kind: "full"; readonly reason: string };

export interface StreamLimits {
  readonly maxMessages?: number;
  readonly maxBytes?: number;
}

export interface StreamOptions {
  /** History 1: a new message replaces the one before it on its subject. */
  readonly keepsLastOnly: boolean;
  readonly dedupeWindowMs: number;
  readonly nowMs: () => number;
}

export type Matches = (message: StreamMessage) => boolean;

/** See the invariants at the top of the file. */
export class MemoryStream {
  readonly #options: StreamOptions;
  readonly #messages = new Map<number, StreamMessage>();
  readonly #lastOfSubject = new Map<string, StreamMessage>();
  readonly #ids = new Map<string, { readonly seq: number; readonly atMs: number }>();
  readonly #listeners = new Set<() => void>();
  readonly #writes: StreamMessage[] = [];
  #lastSeq = 0;
  #bytes = 0;
  limits: StreamLimits = {};

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Share of the bytes it may hold; undefined without a limit. */
  get fill(): number | undefined {
    const { maxBytes } = this.limits;
    return maxBytes === undefined ? undefined : this.#bytes / maxBytes;
  }

  /** Everything that was ever stored, replaced and removed messages too. For assertions. */
  get writes(): readonly StreamMessage[] {
    return this.#writes;
  }

  /** What is stored now, in order. */
  get messages(): readonly StreamMessage[] {
    return [...this.#messages.values()];
  }

  append(request: AppendRequest): AppendResult {
    const last = this.#lastOfSubject.get(request.subject);
    const lastSeq = last?.seq ?? 0;
    if (request.expectedSeq !== undefined && request.expectedSeq !== lastSeq) return { kind: "conflict", lastSeq };
    const known = request.messageId === undefined ? undefined : this.#known(request.messageId);
    if (known !== undefined && request.forgetId !== true) return { kind: "duplicate", seq: known };
    const full = this.#whyFull(request.bytes.length);
    if (full !== undefined) return { kind: "full", reason: full }; // M4
    return this.#store(request, last);
  }

  /** Newest message of a subject; may be a removed one. */
  last(subject: string): StreamMessage | undefined {
    return this.#lastOfSubject.get(subject);
  }

  /** First stored message with `seq >= fromSeq` that fits. */
  next(fromSeq: number, matches: Matches): StreamMessage | undefined {
    for (let seq = Math.max(1, fromSeq); seq <= this.#lastSeq; seq += 1) {
      const message = this.#messages.get(seq);
      if (message !== undefined && matches(message)) return message;
    }
    return undefined;
  }

  lastMatching(matches: Matches): StreamMessage | undefined {
    for (let seq = this.#lastSeq; seq > 0; seq -= 1) {
      const message = this.#messages.get(seq);
      if (message !== undefined && matches(message)) return message;
    }
    return undefined;
  }

  /** Removes stored messages; sequences go on (M1). */
  purge(matches: Matches): void {
    for (const message of this.messages) if (matches(message)) this.#drop(message);
  }

  /** Calls `listener` after every stored message. @returns stop */
  onStored(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What a restart of the server does to the ids: they are learnt again from the messages that are still there (M3). */
  relearnIds(): void {
    this.#ids.clear();
    for (const message of this.#messages.values()) {
      if (message.messageId !== undefined) {
        this.#ids.set(message.messageId, { seq: message.seq, atMs: message.storedAtMs });
      }
    }
  }

  forgetIds(): void {
    this.#ids.clear();
  }

  /** What a power loss does when acknowledged writes were not on disk: the end is gone and its sequences are given again. */
  loseTail(lastSeq: number): void {
    this.purge((message) => message.seq > lastSeq);
    this.#lastSeq = Math.min(this.#lastSeq, lastSeq);
    this.relearnIds();
  }

  /** What a restored copy is: everything as it was when the stream ended at `lastSeq`. */
  goBackTo(lastSeq: number): void {
    for (const message of this.messages) this.#drop(message);
    const before = this.#writes.filter(({ seq }) => seq <= lastSeq);
    const newest = new Map(before.map((message) => [message.subject, message]));
    for (const message of before) {
      if (this.#options.keepsLastOnly && newest.get(message.subject) !== message) continue;
      this.#messages.set(message.seq, message);
      this.#lastOfSubject.set(message.subject, message);
      this.#bytes += message.bytes.length;
    }
    this.#lastSeq = lastSeq;
    this.relearnIds();
  }

  #store(request: AppendRequest, last: StreamMessage | undefined): AppendResult {
    this.#lastSeq += 1;
    const message: StreamMessage = {
      seq: this.#lastSeq,
      subject: request.subject,
      bytes: new Uint8Array(request.bytes), // M2
      storedAtMs: this.#options.nowMs(),
      messageId: request.messageId,
      needsWork: request.needsWork ?? false,
      waits: request.waits ?? false,
      removed: request.removed ?? false,
      headers: request.headers ?? {},
    };
    if (this.#options.keepsLastOnly && last !== undefined) this.#drop(last);
    this.#messages.set(message.seq, message);
    this.#lastOfSubject.set(message.subject, message);
    this.#bytes += message.bytes.length;
    this.#writes.push(message);
    if (message.messageId !== undefined) {
      this.#ids.set(message.messageId, { seq: message.seq, atMs: message.storedAtMs });
    }
    for (const listener of this.#listeners) listener();
    return { kind: "stored", seq: message.seq, storedAtMs: message.storedAtMs };
  }

  #drop(message: StreamMessage): void {
    if (!this.#messages.delete(message.seq)) return;
    this.#bytes -= message.bytes.length;
    if (this.#lastOfSubject.get(message.subject) !== message) return;
    const before = this.#options.keepsLastOnly
      ? undefined
      : this.lastMatching((other) => other.subject === message.subject);
    if (before === undefined) this.#lastOfSubject.delete(message.subject);
    else this.#lastOfSubject.set(message.subject, before);
  }

  #known(messageId: string): number | undefined {
    const known = this.#ids.get(messageId);
    if (known === undefined || this.#options.nowMs() - known.atMs > this.#options.dedupeWindowMs) return undefined;
    return known.seq;
  }

  #whyFull(addedBytes: number): string | undefined {
    const { maxMessages, maxBytes } = this.limits;
    if (maxMessages !== undefined && this.#messages.size >= maxMessages) return "maximum messages exceeded";
    if (maxBytes !== undefined && this.#bytes + addedBytes > maxBytes) return "maximum bytes exceeded";
    return undefined;
  }
}
