import type { Codec } from "@holdfast/codec";
import { compareAndSet, filteredHistory, readLast, watchBucket, type Link } from "@holdfast/jetstream";
import {
  OperatorCommand,
  parseActorKey,
  principalToken,
  RuntimeFault,
  shardOf,
  StuckEntry,
  toPlainFault,
  type CommandOutcome,
  type Manifest,
  type OperatorVerb,
  type Principal,
  type Subjects,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import type { NamespaceReader } from "./namespace-reader.ts";
import { stuckRows, type StuckRow } from "./stuck-rows.ts";

/** `waiting`: no node has carried it out in time; the command stays until the owner of the actor does. */
export type CommandResult = CommandOutcome | { readonly kind: "waiting" };

/** Everything that is stored of one stuck actor. Bytes are base64. */
export interface ExportedActor {
  readonly v: 1;
  readonly key: string;
  readonly record: { readonly seq: number; readonly bytes: string; readonly fault?: string } | undefined;
  readonly entries: readonly StuckEntry[];
  readonly messages: readonly { readonly place: string; readonly seq: number; readonly bytes: string }[];
}

export interface StuckDeskOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly subjects: Subjects;
  readonly manifest: Manifest;
  readonly principal: Principal;
  readonly randomHex: (bytes: number) => string;
  readonly read: NamespaceReader;
}

interface Stored {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly seq: number;
}

const LOOK_MS = 100;
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

/**
 * What is stuck in a namespace, and an operator's commands about it. Reads what is stored; no node is asked.
 *
 *   D1 a command never replaces one that has no outcome yet
 */
export class StuckDesk {
  readonly #options: StuckDeskOptions;

  constructor(options: StuckDeskOptions) {
    this.#options = options;
  }

  /** Durable entries first, then what live owners say of their actors. */
  async list(): Promise<readonly StuckRow[]> {
    return stuckRows(await this.entries(), await this.#options.read.fleet());
  }

  /** What was set aside for good, optionally of one actor, by key. */
  async entries(key?: string): Promise<readonly StuckEntry[]> {
    const stored = await this.#values("entry.>");
    return stored
      .flatMap(({ bytes }) => StuckEntry.safeParse(parseJson(bytes)).data ?? [])
      .filter((entry) => key === undefined || entry.key === key);
  }

  /** Actors of which nothing goes on before an operator says so (HF-3106), by key. */
  async held(): Promise<readonly StuckEntry[]> {
    return (await this.entries()).filter(({ code, subject }) => code === "HF-3106" && subject === "actor");
  }

  /**
   * Asks the owner of an actor for something, and waits for its outcome.
   * @throws RuntimeFault HF-3105 when another command for the actor waits (D1), HF-4007 without permission, HF-4008 when nobody knows whether it was stored
   */
  async command(
    verb: OperatorVerb,
    key: string,
    { messageId, timeoutMs = 10_000 }: { readonly messageId?: string | undefined; readonly timeoutMs?: number } = {},
  ): Promise<CommandResult> {
    const { randomHex, principal } = this.#options;
    parseActorKey(key);
    const command = OperatorCommand.parse({
      v: 1,
      token: randomHex(12),
      verb,
      key,
      by: principalToken(principal),
      ...(messageId !== undefined && { messageId }),
    });
    await this.#leave(command);
    for (const endMs = performance.now() + timeoutMs; ;) {
      const now = tryCommand((await this.#current(key))?.bytes);
      if (now?.token === command.token && now.outcome !== undefined) return now.outcome;
      if (performance.now() >= endMs) return { kind: "waiting" };
      await delay(LOOK_MS);
    }
  }

  /** @throws RuntimeFault HF-3001 when nothing at all is stored under the key */
  async export(key: string): Promise<ExportedActor> {
    const { link, codec, subjects, manifest } = this.#options;
    const shard = shardOf(manifest, parseActorKey(key).partition);
    const record = await readLast(link, subjects.actorsStream(shard), subjects.actorSubject(shard, key));
    const entries = await this.entries(key);
    const waiting = await filteredHistory(link, {
      stream: subjects.parkedStream(shard),
      filters: [subjects.parked(key)],
    });
    const quarantined = await this.#values(`bytes.${key}.>`);
    if (record === undefined && entries.length + waiting.length + quarantined.length === 0)
      throw new RuntimeFault("HF-3001", `${key}: nothing is stored under it. Check type and id.`);
    return {
      v: 1,
      key,
      record:
        record === undefined
          ? undefined
          : { seq: record.seq, bytes: base64(record.bytes), ...faultOf(codec, record.bytes) },
      entries,
      messages: [
        ...quarantined.map(({ key: place, seq, bytes }) => ({ place, seq, bytes: base64(bytes) })),
        ...waiting.map(({ subject, seq, bytes }) => ({ place: subject, seq, bytes: base64(bytes) })),
      ],
    };
  }

  async #leave(command: OperatorCommand): Promise<void> {
    const { link, subjects } = this.#options;
    const before = await this.#current(command.key);
    const known = tryCommand(before?.bytes);
    const busy = new RuntimeFault(
      "HF-3105",
      `${command.key}: another command (${known?.verb ?? "of another build"}) waits for its outcome. Try again when it has one.`,
    );
    if (before !== undefined && known !== undefined && known.outcome === undefined) throw busy;
    const outcome = await compareAndSet(link, {
      stream: `KV_${subjects.stuckBucket}`,
      subject: this.#commandSubject(command.key),
      bytes: new TextEncoder().encode(JSON.stringify(command)),
      expectedSeq: before?.seq ?? 0,
      token: command.token,
      tokenOf: (bytes) => tryCommand(bytes)?.token,
    });
    if (outcome.kind === "stale") throw busy;
    if (outcome.kind === "unknown")
      throw new RuntimeFault("HF-4008", `${command.key}: ${outcome.reason}. Look at "holdfast stuck", then try again.`);
  }

  #commandSubject(key: string): string {
    return `$KV.${this.#options.subjects.stuckBucket}.command.${key}`;
  }

  #current(key: string): Promise<{ readonly bytes: Uint8Array; readonly seq: number } | undefined> {
    const { link, subjects } = this.#options;
    return readLast(link, `KV_${subjects.stuckBucket}`, this.#commandSubject(key));
  }

  async #values(keys: string): Promise<readonly Stored[]> {
    const { link, subjects } = this.#options;
    const current = new Map<string, Stored>();
    const reader = await watchBucket(link, {
      bucket: subjects.stuckBucket,
      keys,
      onFault: () => undefined,
      deliver: ({ key, bytes, seq, removed }) => {
        if (removed) current.delete(key);
        else current.set(key, { key, bytes, seq });
      },
    });
    await reader.stop();
    return [...current.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }
}

function faultOf(codec: Codec, bytes: Uint8Array): { readonly fault?: string } {
  try {
    codec.decodeRecord(bytes);
    return {};
  } catch (error) {
    const { code, message } = toPlainFault(error, "HF-2002");
    return { fault: `${code} ${message}` };
  }
}

const tryCommand = (bytes: Uint8Array | undefined): OperatorCommand | undefined =>
  bytes === undefined ? undefined : OperatorCommand.safeParse(parseJson(bytes)).data;

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
