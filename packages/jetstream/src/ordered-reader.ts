// OrderedReader: every message of some subjects of a stream from a sequence on, in order, across every kind of outage.
//
// Owns: the cursor, the sequence of PushConsumers that serve it.
// Does not own: what a message means.
//
//   O1  every message with seq >= fromSeq that matches is handed over exactly once, in stream order; the cursor never moves back
//   O2  a broken consumer is replaced by one that starts at cursor + 1, until the reader is stopped
//   O3  a stream that ends below what was handed over, holds another message in its place, or is another one of the same name, has lost
//       data: reported as HF-4006, and the reader stops, because the sequences it knows mean nothing there
//   O4  a receiver that throws stops the reader and is reported; handing the same message over again would only throw again

import { RuntimeFault } from "@holdfast/protocol";
import { API_CODE } from "./api-codes.ts";
import { readSeq } from "./leader-read.ts";
import type { Link } from "./link.ts";
import { backoffMs, pause } from "./pause.ts";
import { PushConsumer } from "./push-consumer.ts";
import { streamMissing, streamPosition } from "./stream-info.ts";
import type { StreamMessage } from "./stream-message.ts";

export interface OrderedReaderOptions {
  readonly stream: string;
  /** Subjects, wildcards allowed, at least one. */
  readonly filters: readonly string[];
  /** First sequence wanted; 1 for everything. May lie beyond the end: reading begins when the stream gets there. */
  readonly fromSeq: number;
  /** Leaves the payloads on the server. */
  readonly headersOnly?: boolean | undefined;
  /** Must not block. */
  readonly deliver: (message: StreamMessage) => void;
  /** Called at most once, when the reader had to stop by itself (O3, O4). */
  readonly onFault: (fault: RuntimeFault) => void;
  /** Creation time of the stream the sequences belong to, when the caller knows it. */
  readonly expectedCreated?: string | undefined;
  /** What a reader before this one has handed over last, as evidence for O3. */
  readonly seen?: SeenMessage | undefined;
  /** How often the server says that it is there when nothing happens, ms. Default 1500. */
  readonly heartbeatMs?: number | undefined;
  /** Told whenever a consumer was replaced, and why. */
  readonly onReplaced?: ((reason: string) => void) | undefined;
}

/** A message that was there. `seq` 0: none. */
export interface SeenMessage {
  readonly seq: number;
  readonly storedAtMs: number;
}

const HEARTBEAT_MS = 1500;
/** A new leader may count behind for a moment; loss is believed only when seen this often in a row. */
const LOSS_SIGHTINGS = 3;
const LOSS_RECHECK_MS = 500;
const SHORT_LIFE_MS = 1000;

export class OrderedReader {
  readonly #link: Link;
  readonly #options: OrderedReaderOptions;
  readonly #stopping = new AbortController();
  #created: string | undefined;
  #cursor: number;
  /** The newest message handed over. What a caller asks for is a wish, this is evidence. */
  #seen: SeenMessage;
  #consumer: PushConsumer | undefined;
  /** Resolves with the reason once the present consumer breaks or the reader ends. */
  #broken = Promise.withResolvers<string>();
  #wasOpen = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(link: Link, options: OrderedReaderOptions) {
    this.#link = link;
    this.#options = options;
    this.#created = options.expectedCreated;
    this.#seen = options.seen ?? { seq: 0, storedAtMs: 0 };
    this.#cursor = Math.max(1, options.fromSeq) - 1;
  }

  /**
   * Starts reading; resolves once the first consumer exists.
   *
   * @throws RuntimeFault HF-4006 when the stream is missing or another one; HF-4007 when reading is not allowed;
   *   HF-4008 when JetStream did not answer
   */
  static async start(link: Link, options: OrderedReaderOptions): Promise<OrderedReader> {
    const reader = new OrderedReader(link, options);
    await reader.#checkStream();
    await reader.#openUntilCreated();
    reader.#running = reader.#keepOpen();
    return reader;
  }

  /** Sequence of the last message handed over, or the one before `fromSeq`. */
  get cursor(): number {
    return this.#cursor;
  }

  /** The newest message handed over by this reader, or by the one before it. */
  get seen(): SeenMessage {
    return this.#seen;
  }

  /** Aborts when the reader ended, by `stop` or by a fault, which is the reason then. */
  get ended(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Nothing is handed over after the call. */
  async stop(): Promise<void> {
    this.#end();
    await this.#running;
  }

  #end(fault?: RuntimeFault): void {
    this.#stopping.abort(fault);
    this.#consumer?.stop();
    this.#broken.resolve("stopped");
  }

  #fail(fault: RuntimeFault): void {
    if (this.#stopping.signal.aborted) return;
    this.#end(fault);
    this.#options.onFault(fault);
  }

  async #keepOpen(): Promise<void> {
    // Consumers that break at once, one after the other, must not keep the server busy.
    let shortLived = 0;
    while (!this.#stopping.signal.aborted) {
      const openedMs = performance.now();
      const reason = await this.#broken.promise;
      if (this.#stopping.signal.aborted) return;
      this.#options.onReplaced?.(reason);
      shortLived = performance.now() - openedMs < SHORT_LIFE_MS ? shortLived + 1 : 0;
      if (shortLived > 1) await pause(backoffMs(shortLived), this.#stopping.signal);
      try {
        await this.#untilConnected();
        await this.#checkStream();
        await this.#openUntilCreated();
      } catch (error) {
        this.#failWith(error);
        return;
      }
    }
  }

  async #untilConnected(): Promise<void> {
    while (!this.#link.isConnected && !this.#stopping.signal.aborted && !this.#link.closed.aborted) {
      await this.#link.whenConnected(60_000, this.#stopping.signal);
    }
    if (this.#link.closed.aborted) this.#end();
  }

  /** Opens consumers until one was created. */
  async #openUntilCreated(): Promise<void> {
    for (let attempt = 0; !this.#stopping.signal.aborted; attempt++) {
      this.#broken = Promise.withResolvers<string>();
      const consumer = this.#openConsumer(this.#broken.resolve);
      const created = await this.#tryCreate(consumer);
      if (created) return;
      consumer.stop();
      await pause(backoffMs(attempt), this.#stopping.signal);
      await this.#untilConnected();
    }
  }

  #openConsumer(onBroken: (reason: string) => void): PushConsumer {
    const { stream, filters, headersOnly, heartbeatMs } = this.#options;
    const consumer = new PushConsumer(this.#link, {
      stream,
      filters,
      fromSeq: this.#cursor + 1, // O2
      headersOnly: headersOnly === true,
      heartbeatMs: heartbeatMs ?? HEARTBEAT_MS,
      onMessage: (message) => {
        if (message.seq <= this.#cursor) return; // O1
        this.#cursor = message.seq;
        this.#seen = { seq: message.seq, storedAtMs: message.storedAtMs };
        this.#options.deliver(message);
      },
      onBroken: (reason, error) => {
        if (error !== undefined) this.#failWith(error); // O4
        onBroken(reason);
      },
    });
    this.#consumer = consumer;
    return consumer;
  }

  /** @returns false when it was not created for a reason that may pass */
  async #tryCreate(consumer: PushConsumer): Promise<boolean> {
    try {
      const result = await consumer.create(this.#stopping.signal);
      if (result.kind === "refused" && result.code === API_CODE.streamNotFound) {
        throw streamMissing(this.#options.stream);
      }
      if (result.kind === "refused" && !this.#wasOpen) throw refusedConsumer(this.#options, result.reason);
      this.#wasOpen ||= result.kind === "ok";
      return result.kind === "ok";
    } catch (error) {
      if (error instanceof RuntimeFault && error.code === "HF-4008" && !this.#link.closed.aborted) return false;
      throw error;
    }
  }

  /** O3. */
  async #checkStream(): Promise<void> {
    const { stream } = this.#options;
    for (let sighting = 1; !this.#stopping.signal.aborted; sighting++) {
      const position = await this.#answered(() => streamPosition(this.#link, stream, this.#stopping.signal));
      if (position === undefined) return;
      if (this.#created !== undefined && this.#created !== position.created) {
        throw lostData(stream, `the stream of ${this.#created}`, `one created at ${position.created}`);
      }
      this.#created = position.created;
      if (position.lastSeq >= this.#seen.seq) break;
      if (sighting >= LOSS_SIGHTINGS) {
        throw lostData(stream, `sequence ${this.#seen.seq} or more`, `${position.lastSeq} as the last one`);
      }
      await pause(LOSS_RECHECK_MS, this.#stopping.signal);
    }
    await this.#checkSeenMessage();
  }

  /** A stream that lost its tail may have grown past it again; then other messages have the sequences of the lost ones. */
  async #checkSeenMessage(): Promise<void> {
    const { seq, storedAtMs } = this.#seen;
    if (seq === 0) return;
    const found = await this.#answered(() =>
      readSeq(this.#link, this.#options.stream, seq, { signal: this.#stopping.signal }),
    );
    // One that is gone was trimmed or replaced and says nothing.
    if (found === undefined || found.storedAtMs === storedAtMs) return;
    const [expected, present] = [storedAtMs, found.storedAtMs].map((ms) => new Date(ms).toISOString());
    throw lostData(this.#options.stream, `message ${seq} of ${expected}`, `one of ${present}`);
  }

  /** Asks until JetStream answers. @returns undefined when there is nothing, or the reader was stopped meanwhile */
  async #answered<T>(ask: () => Promise<T>): Promise<T | undefined> {
    while (!this.#stopping.signal.aborted) {
      try {
        return await ask();
      } catch (error) {
        const unanswered = error instanceof RuntimeFault && error.code === "HF-4008";
        if (!unanswered || !this.#wasOpen || this.#link.closed.aborted) throw error;
      }
    }
    return undefined;
  }

  #failWith(error: unknown): void {
    if (this.#link.closed.aborted) {
      this.#end();
      return;
    }
    if (error instanceof RuntimeFault) {
      this.#fail(error);
      return;
    }
    this.#fail(
      new RuntimeFault(
        "HF-4001",
        `Reader of ${this.#options.stream}: its receiver threw at sequence ${this.#cursor}. Mend the receiver; reading has stopped.`,
        { cause: error, facts: { stream: this.#options.stream, seq: this.#cursor } },
      ),
    );
  }
}

function refusedConsumer(options: OrderedReaderOptions, reason: string): RuntimeFault {
  return new RuntimeFault(
    "HF-4003",
    `Stream ${options.stream}: a reader of ${options.filters.join(", ")} was refused (${reason}). Check the stream's subjects and the account's limits.`,
    { facts: { stream: options.stream } },
  );
}

function lostData(stream: string, expected: string, found: string): RuntimeFault {
  return new RuntimeFault(
    "HF-4006",
    `Stream ${stream}: expected ${expected}, found ${found}. The broker lost stored data; give the stream a new generation before working on.`,
    { facts: { stream } },
  );
}
