import { watchBucket, type KvValue, type Link } from "@holdfast/jetstream";
import { NodeLoad, PANIC_KEY, parsePanic, RuntimeFault, type PanicState } from "@holdfast/protocol";

/** How many messages of one client may wait for an answer at the same time. */
export interface ClientWindow {
  /** In all; default 1024. */
  readonly unanswered?: number;
  /** To one partition; default 256. */
  readonly unansweredPerPartition?: number;
}

export interface BusyGateOptions {
  readonly link: Link;
  readonly fleetBucket: string;
  readonly window: ClientWindow;
}

const MAX_UNANSWERED = 1024;
const MAX_UNANSWERED_PER_PARTITION = 256;

/** What a node said of one partition. */
interface Told {
  readonly waiting: number;
  readonly retryAfterMs: number;
  readonly untilMs: number;
}

const WATCH_AGAIN_MS = 30_000;
/** Time between two answers, assumed until some came, ms. */
const FIRST_GUESS_MS = 2;
const SHORTEST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 10_000;

/**
 * Whether a message may be sent now, decided without asking anybody.
 *
 * Owns: how many messages of this client are unanswered, what nodes last said. Does not own: sending.
 *   G1 refused means: nothing was sent, nothing was stored; the same message may be sent later
 *   G2 what a node said holds for the time it gave, counted from its arrival: a node that died refuses nobody for long
 *   G4 those who are told to come back are told different times, at the pace of the answers: they do not all come at once
 *   G5 while the fleet is stopped nobody is let in; a client that does not know of it yet is told once its message is stored
 *   G3 a client that cannot hear the nodes is bounded by its own window alone
 */
export class BusyGate {
  readonly #options: BusyGateOptions;
  readonly #unanswered = new Map<string, number>();
  /** Node → partition → what it said. */
  readonly #told = new Map<string, ReadonlyMap<string, Told>>();
  readonly #closing = new AbortController();
  #panic: PanicState | undefined;
  #total = 0;
  /** Time between two answers lately. */
  #spacingMs = FIRST_GUESS_MS;
  #answeredAtMs: number | undefined;
  /** When everybody who was told to come back will have done so. */
  #turnsUntilMs = 0;
  #watchedAtMs: number | undefined;

  constructor(options: BusyGateOptions) {
    this.#options = options;
  }

  /**
   * Takes a place for one message.
   * @returns gives it back, once the message was answered or is no longer waited for
   * @throws RuntimeFault HF-3020 with `retryAfterMs` in its facts (G1)
   */
  enter(partition: string): () => void {
    this.#watch();
    if (this.#panic?.isRaised === true) throw stopped(this.#panic); // G5
    const own = this.#unanswered.get(partition) ?? 0;
    const told = this.#toldOf(partition);
    if (told !== undefined) throw busy(partition, told.waiting, Math.max(told.retryAfterMs, this.#nextTurnMs()));
    const { unanswered = MAX_UNANSWERED, unansweredPerPartition = MAX_UNANSWERED_PER_PARTITION } = this.#options.window;
    if (own >= unansweredPerPartition) throw busy(partition, own, this.#nextTurnMs());
    if (this.#total >= unanswered) throw busy(partition, this.#total, this.#nextTurnMs());
    this.#unanswered.set(partition, own + 1);
    this.#total += 1;
    return () => this.#leave(partition);
  }

  close(): void {
    this.#closing.abort();
  }

  /** The stop flag was read, by whoever had reason to. */
  knows(panic: PanicState): void {
    if (panic.revision > (this.#panic?.revision ?? 0)) this.#panic = panic;
  }

  /** G2. */
  #toldOf(partition: string): Told | undefined {
    for (const partitions of this.#told.values()) {
      const told = partitions.get(partition);
      if (told !== undefined && performance.now() < told.untilMs) return told;
    }
    return undefined;
  }

  #leave(partition: string): void {
    const nowMs = performance.now();
    if (this.#answeredAtMs !== undefined) this.#spacingMs += (nowMs - this.#answeredAtMs - this.#spacingMs) / 64;
    this.#answeredAtMs = nowMs;
    this.#total -= 1;
    const left = (this.#unanswered.get(partition) ?? 1) - 1;
    if (left === 0) this.#unanswered.delete(partition);
    else this.#unanswered.set(partition, left);
  }

  /** G4. */
  #nextTurnMs(): number {
    const nowMs = performance.now();
    const longestMs = LONGEST_RETRY_MS - SHORTEST_RETRY_MS;
    this.#turnsUntilMs = Math.min(nowMs + longestMs, Math.max(nowMs, this.#turnsUntilMs) + this.#spacingMs);
    return Math.round(SHORTEST_RETRY_MS + this.#turnsUntilMs - nowMs);
  }

  /** Begins to listen with the first message; nobody waits for it (G3). */
  #watch(): void {
    const nowMs = performance.now();
    if (this.#watchedAtMs !== undefined && nowMs - this.#watchedAtMs < WATCH_AGAIN_MS) return;
    this.#watchedAtMs = nowMs;
    void this.#listen().catch(() => undefined);
  }

  async #listen(): Promise<void> {
    const { link, fleetBucket } = this.#options;
    const watch = (keys: string, deliver: (value: KvValue) => void): Promise<{ stop(): Promise<void> }> =>
      watchBucket(link, {
        bucket: fleetBucket,
        keys,
        signal: this.#closing.signal,
        onFault: () => (this.#watchedAtMs = performance.now()),
        deliver,
      });
    const readers = await Promise.all([
      watch(PANIC_KEY, ({ bytes, seq, removed }) => {
        if (!removed) this.knows(parsePanic(parseJson(bytes), seq));
      }),
      watch("busy.>", ({ key, bytes, removed }) => this.#take(key.slice("busy.".length), removed ? undefined : bytes)),
    ]);
    this.#watchedAtMs = Number.POSITIVE_INFINITY;
    const stop = async (): Promise<void> => {
      for (const reader of readers) await reader.stop();
    };
    this.#closing.signal.addEventListener("abort", () => void stop(), { once: true });
    if (this.#closing.signal.aborted) await stop();
  }

  #take(node: string, bytes: Uint8Array | undefined): void {
    const load = bytes === undefined ? undefined : readLoad(bytes);
    if (load === undefined) {
      this.#told.delete(node);
      return;
    }
    const untilMs = performance.now() + load.validMs;
    this.#told.set(
      node,
      new Map(Object.entries(load.partitions).map(([partition, told]) => [partition, { ...told, untilMs }])),
    );
  }
}

function busy(partition: string, waiting: number, retryAfterMs: number): RuntimeFault {
  return new RuntimeFault(
    "HF-3020",
    `Partition ${partition}: ${waiting} messages wait, no more are taken now; nothing was sent. Send it again in ${retryAfterMs} ms.`,
    { facts: { partition, waiting, retryAfterMs } },
  );
}

function stopped({ by, reason, revision }: PanicState): RuntimeFault {
  return new RuntimeFault(
    "HF-3021",
    `The fleet is stopped (by ${by || "somebody"}: ${reason}); nothing was sent. Send it again when "holdfast panic clear" has lifted that.`,
    { facts: { revision } },
  );
}

/** A value that nobody can read says nothing. */
const readLoad = (bytes: Uint8Array): NodeLoad | undefined => NodeLoad.safeParse(parseJson(bytes)).data;

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
