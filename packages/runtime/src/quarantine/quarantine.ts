import {
  hash128,
  ATTEMPTS_REMEMBERED,
  sha256Hex,
  StuckEntry,
  type ErrorCode,
  type StuckAttempt,
} from "@holdfast/protocol";
import type { BrokerTime } from "../broker-time.ts";
import type { FleetRegistry, FleetValue, InboxMessage, Telemetry } from "../ports/index.ts";

export interface QuarantineOptions {
  readonly bucket: FleetRegistry;
  readonly incarnation: string;
  readonly time: Pick<BrokerTime, "nowMs">;
  readonly telemetry: Telemetry;
}

/** What failed, as an entry tells it. */
export interface Failure {
  readonly code: string;
  readonly reason: string;
  readonly state: StuckEntry["state"];
  /** Failed attempts that are not in the entry yet, oldest first; at least one. */
  readonly attempts: readonly StuckAttempt[];
}

/** Codes of entries under which nothing of an actor is loaded until an operator says `retry`. */
const HOLDS: ReadonlySet<string> = new Set<ErrorCode>(["HF-3101", "HF-3102", "HF-3104", "HF-3106"]);

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** Stands for a message wherever its id is too long or missing. */
export const markOf = ({ messageId, bytes }: Pick<InboxMessage, "messageId" | "bytes">): string =>
  hash128(messageId === "" ? sha256Hex(bytes) : messageId);

/**
 * What the fleet has set aside for good: the entries of the stuck bucket, as this node knows them.
 *
 * Owns: entries, the bytes of quarantined messages. Does not own: when to try again (cells), what operators want (OperatorCommands).
 *   Q1 bytes are stored before the entry that names them, and the entry before its message counts as considered
 *   Q2 an entry outlives its node; it goes when its message was taken or skipped, or its record could be read
 */
export class Quarantine {
  readonly #options: QuarantineOptions;
  readonly #actors = new Map<string, StuckEntry>();
  /** Actor → mark of a message → its entry. */
  readonly #messages = new Map<string, Map<string, StuckEntry>>();
  readonly #seqs = new Map<string, number>();
  #watch: { stop(): Promise<void> } | undefined;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** Resolves when every entry that is stored is known. */
  async start(): Promise<void> {
    this.#watch = await this.#options.bucket.watch((value) => this.#seen(value), "entry.>");
  }

  async stop(): Promise<void> {
    await this.#watch?.stop();
  }

  /** What is said about an actor as a whole. */
  actor(key: string): StuckEntry | undefined {
    return this.#actors.get(key);
  }

  /** Actors that are set aside as a whole under a code. */
  actorsUnder(code: ErrorCode): readonly StuckEntry[] {
    return [...this.#actors.values()].filter((entry) => entry.code === code);
  }

  /** Why nothing of an actor may be loaded, whatever its record is. */
  heldBack(key: string): StuckEntry | undefined {
    const entry = this.actor(key);
    return entry !== undefined && HOLDS.has(entry.code) ? entry : undefined;
  }

  message(key: string, mark: string): StuckEntry | undefined {
    return this.#messages.get(key)?.get(mark);
  }

  /** Messages of an actor that were set aside for good, oldest first. */
  messagesOf(key: string): readonly StuckEntry[] {
    const entries = this.#messages.get(key);
    if (entries === undefined) return [];
    return [...entries.values()].toSorted((a, b) => a.firstMs - b.firstMs || (a.seq ?? 0) - (b.seq ?? 0));
  }

  attempt(code: string, reason: string): StuckAttempt {
    return { atMs: this.#options.time.nowMs(), node: this.#options.incarnation, code, reason: short(reason) };
  }

  /** @returns false when it could not be stored, or nobody knows */
  setActorAside(
    key: string,
    failure: Failure,
    facts: Partial<Pick<StuckEntry, "seq" | "size" | "sha256" | "by">> = {},
  ): Promise<boolean> {
    return this.#put(key, undefined, { ...failure, subject: "actor", facts });
  }

  /**
   * @param bytes  the message as it lies in the parked stream; undefined when it stays there (Q1)
   * @returns false when it could not be stored, or nobody knows
   */
  async setMessageAside(
    message: InboxMessage,
    failure: Failure,
    bytes: Uint8Array | undefined,
    origin: Pick<StuckEntry, "principal" | "blobs">,
  ): Promise<boolean> {
    const mark = markOf(message);
    if (
      bytes !== undefined &&
      (await this.#options.bucket.put(bytesKey(message.key, mark), bytes, origin.blobs)) === undefined
    )
      return false;
    const facts = {
      mark,
      messageId: message.messageId.slice(0, 400),
      lane: message.lane,
      seq: message.seq,
      size: message.bytes.length,
      sha256: sha256Hex(message.bytes),
      ...origin,
    };
    return this.#put(message.key, mark, { ...failure, subject: "message", facts });
  }

  /** Bytes of a message that was taken out, as they would lie in the parked stream. */
  async bytesOf(key: string, mark: string): Promise<Uint8Array | undefined> {
    return (await this.#options.bucket.get(bytesKey(key, mark)))?.bytes;
  }

  /** Forgets what is over: an actor, or one message of it (Q2). @throws RuntimeFault HF-4008 when that was not acknowledged */
  async remove(key: string, mark?: string): Promise<void> {
    if ((mark === undefined ? this.actor(key) : this.message(key, mark)) === undefined) return;
    await this.#options.bucket.remove(entryKey(key, mark));
    this.#forget(key, mark);
    if (mark !== undefined) await this.#options.bucket.remove(bytesKey(key, mark));
  }

  async #put(
    key: string,
    mark: string | undefined,
    given: Failure & { readonly subject: StuckEntry["subject"]; readonly facts: Partial<StuckEntry> },
  ): Promise<boolean> {
    const { code, reason, state, attempts, subject, facts } = given;
    const name = entryKey(key, mark);
    const known = mark === undefined ? this.actor(key) : this.message(key, mark);
    const entry: StuckEntry = {
      v: 1,
      key,
      subject,
      state,
      code,
      reason: short(reason),
      attempts: (known?.attempts ?? 0) + attempts.length,
      history: [...(known?.history ?? []), ...attempts].slice(-ATTEMPTS_REMEMBERED),
      firstMs: known?.firstMs ?? attempts[0]?.atMs ?? this.#options.time.nowMs(),
      lastMs: this.#options.time.nowMs(),
      ...facts,
    };
    const written = await this.#options.bucket.put(name, encode(entry));
    if (written === undefined) return false;
    this.#take(name, entry, written.seq);
    this.#options.telemetry.error(`${subject}.${state}`, { key, code, attempts: entry.attempts, mark });
    return true;
  }

  #seen({ key: name, bytes, seq }: FleetValue): void {
    if (bytes.length > 0) {
      const entry = StuckEntry.safeParse(parseJson(bytes)).data;
      if (entry === undefined) this.#options.telemetry.error("quarantine.entry-unreadable", { entry: name });
      else this.#take(name, entry, seq);
      return;
    }
    if ((this.#seqs.get(name) ?? 0) >= seq) return;
    this.#seqs.delete(name);
    const [, partition, type, id, mark] = name.split(".");
    this.#forget(`${partition}.${type}.${id}`, mark);
  }

  /** The watch may tell of an older value than the one we have just written. */
  #take(name: string, entry: StuckEntry, seq: number): void {
    if ((this.#seqs.get(name) ?? 0) >= seq) return;
    this.#seqs.set(name, seq);
    if (entry.mark === undefined) {
      this.#actors.set(entry.key, entry);
      return;
    }
    const entries = this.#messages.get(entry.key) ?? new Map<string, StuckEntry>();
    this.#messages.set(entry.key, entries.set(entry.mark, entry));
  }

  #forget(key: string, mark: string | undefined): void {
    if (mark === undefined) this.#actors.delete(key);
    const entries = mark === undefined ? undefined : this.#messages.get(key);
    if (mark !== undefined) entries?.delete(mark);
    if (entries?.size === 0) this.#messages.delete(key);
  }
}

const short = (reason: string): string => reason.slice(0, 1000);

const entryKey = (key: string, mark?: string): string => `entry.${key}${mark === undefined ? "" : `.${mark}`}`;
const bytesKey = (key: string, mark: string): string => `bytes.${key}.${mark}`;

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
