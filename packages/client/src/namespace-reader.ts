import type { Codec } from "@holdfast/codec";
import {
  countFrom,
  openNamespace,
  readLast,
  serverTimeMs,
  subjectHistory,
  watchBucket,
  type Link,
} from "@holdfast/jetstream";
import {
  Heartbeat,
  Lease,
  RecoveryReport,
  RuntimeFault,
  shardOf,
  parseActorKey,
  toPlainFault,
  type ActorRecord,
  type JournalEntry,
  type Manifest,
  type PlainEvent,
  type RecordHeader,
  type Subjects,
} from "@holdfast/protocol";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { fleetOverview, type FleetOverview } from "./fleet-overview.ts";
import { PayloadReader } from "./payload-reader.ts";

/** What a node says is stuck on it. */
export const StuckList = z.object({
  v: z.literal(1),
  node: z.string(),
  reports: z.array(
    z.object({
      key: z.string(),
      kind: z.string(),
      why: z.string(),
      sinceMs: z.number().optional(),
      fix: z.string().optional(),
    }),
  ),
});
export type StuckList = z.infer<typeof StuckList>;

export interface FleetState {
  readonly nodes: readonly (Heartbeat & { readonly storedAtMs: number })[];
  readonly leases: readonly Lease[];
  readonly reports: readonly RecoveryReport[];
  readonly stuck: readonly StuckList[];
}

export interface StoredActor {
  readonly header: RecordHeader;
  readonly record: ActorRecord;
}

/** One message of a journal stream. */
export interface StoredJournalMessage {
  /** Its sequence in the journal stream of the actor's shard. */
  readonly seq: number;
  readonly entries: readonly JournalEntry[];
}

export interface NamespaceReaderOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly subjects: Subjects;
  readonly manifest: Manifest;
}

const JOURNAL_WAIT_MS = 10_000;
const JOURNAL_LOOK_MS = 50;

/** Answers from the stored state alone; no node is asked. */
export class NamespaceReader {
  readonly #options: NamespaceReaderOptions;
  readonly #payloads: PayloadReader;

  constructor(options: NamespaceReaderOptions) {
    this.#options = options;
    this.#payloads = new PayloadReader(options.link, options.codec, options.subjects);
  }

  /**
   * A record, with its output or error when it has ended. Inputs of children stay references.
   * @returns undefined when there is no such actor
   * @throws RuntimeFault HF-2002, HF-2003 when its record cannot be read here, HF-3007 when its output cannot
   */
  async actor(key: string): Promise<StoredActor | undefined> {
    const stored = await this.actorAsStored(key);
    if (stored === undefined) return undefined;
    const { header, record } = stored;
    const { blobs, ...snapshot } = record.snapshot;
    if (blobs === undefined) return stored;
    return { header, record: { ...record, snapshot: await this.#payloads.whole(snapshot, blobs) } };
  }

  /** A record as it is stored: what is kept outside of it stays a reference. @throws RuntimeFault HF-2002, HF-2003 */
  async actorAsStored(key: string): Promise<StoredActor | undefined> {
    const stored = await this.#load(key);
    return stored === undefined ? undefined : this.#options.codec.decodeRecord(stored);
  }

  /** Clear header of one actor, without decoding its payload. @returns undefined when there is no such actor */
  async header(key: string): Promise<RecordHeader | undefined> {
    const stored = await this.#load(key);
    return stored === undefined ? undefined : this.#options.codec.decodeHeader(stored);
  }

  /** Headers of all actors, optionally of one type, oldest change first. Unreadable ones are handed to `unreadable`. */
  async headers(
    type?: string,
    unreadable: (key: string, code: string) => void = () => undefined,
  ): Promise<readonly RecordHeader[]> {
    const { link, codec, subjects, manifest } = this.#options;
    const found = new Map<string, RecordHeader>();
    for (let shard = 0; shard < manifest.shards; shard += 1) {
      const reader = await watchBucket(link, {
        bucket: subjects.actorsBucket(shard),
        onFault: () => undefined,
        deliver: ({ key, bytes, removed }) => {
          const [, keyType, id] = key.split(".");
          if (removed || id === undefined || (type !== undefined && keyType !== type)) return;
          try {
            found.delete(key);
            found.set(key, codec.decodeHeader(bytes));
          } catch (error) {
            unreadable(key, toPlainFault(error, "HF-2002").code);
          }
        },
      });
      await reader.stop();
    }
    return [...found.values()];
  }

  /**
   * The journal as far as a revision that a record has shown: entries are written after it, and one that is missing is on its way.
   * @throws RuntimeFault HF-4008 when it does not get there in time; what `journal` throws
   */
  async journalThrough(key: string, rev: number): Promise<readonly JournalEntry[]> {
    const untilMs = performance.now() + JOURNAL_WAIT_MS;
    for (;;) {
      const entries = await this.journal(key);
      const last = entries.at(-1)?.rev ?? 0;
      if (last >= rev) return entries;
      if (performance.now() >= untilMs)
        throw new RuntimeFault("HF-4008", `Journal of ${key}: expected revision ${rev}, found ${last}. Ask again.`);
      await delay(JOURNAL_LOOK_MS);
    }
  }

  /**
   * Macrosteps of an actor's present incarnation, in order, each once, with what of their events is kept outside.
   * @throws RuntimeFault HF-3007 when a part of an event is missing or damaged: a transcript with a hole must not pass for a whole one
   */
  async journal(key: string, signal: AbortSignal = AbortSignal.timeout(30_000)): Promise<readonly JournalEntry[]> {
    let entries: JournalEntry[] = [];
    for (const entry of (await this.journalAsStored(key, signal)).flatMap((message) => message.entries)) {
      const last = entries.at(-1);
      if (last !== undefined && last.genesis !== entry.genesis) entries = [];
      else if (last !== undefined && entry.rev <= last.rev) continue;
      entries.push(entry);
    }
    const whole: JournalEntry[] = [];
    for (const { blobs, ...entry } of entries) {
      whole.push({ ...entry, event: await this.#payloads.whole(entry.event, blobs) });
    }
    return whole;
  }

  /**
   * Every stored journal message of an actor, in stored order: with repeated entries, and those of former incarnations. What is kept outside
   * of them stays a reference.
   */
  async journalAsStored(
    key: string,
    signal: AbortSignal = AbortSignal.timeout(30_000),
  ): Promise<readonly StoredJournalMessage[]> {
    const { link, codec, subjects, manifest } = this.#options;
    const shard = shardOf(manifest, parseActorKey(key).partition);
    const messages = await subjectHistory(link, {
      stream: subjects.journalStream(shard),
      subject: subjects.journal(key),
      signal,
    });
    return messages.map(({ seq, bytes }) => ({ seq, entries: codec.decodeJournalBatch(bytes) }));
  }

  /** The event of an entry with what of it is kept outside. @throws RuntimeFault HF-3007 when that is missing or damaged */
  eventOf({ event, blobs }: Pick<JournalEntry, "event" | "blobs">): Promise<PlainEvent> {
    return this.#payloads.whole(event, blobs);
  }

  async #load(key: string): Promise<Uint8Array | undefined> {
    const { link, subjects, manifest } = this.#options;
    const shard = shardOf(manifest, parseActorKey(key).partition);
    const stored = await readLast(link, subjects.actorsStream(shard), subjects.actorSubject(shard, key));
    return stored === undefined || stored.bytes.length === 0 ? undefined : stored.bytes;
  }

  /** The fleet as `fleetOverview` shows it, with the lag of every partition. */
  async overview(): Promise<FleetOverview & Pick<FleetState, "leases" | "reports" | "stuck">> {
    const { link, subjects } = this.#options;
    const fleet = await this.fleet();
    const nowMs = (await serverTimeMs(link, `KV_${subjects.fleetBucket}`)) ?? Date.now();
    const { manifest } = await openNamespace(link, subjects.ns); // pools may have come since this reader was made
    const cursors = fleetOverview(manifest, fleet, nowMs).partitions;
    const lags = new Map<string, number>();
    const name = `count_${randomUUID().replaceAll("-", "")}`;
    for (const { partition, cursor } of cursors) {
      const stream = subjects.inboxStream(shardOf(manifest, partition));
      const count = {
        stream,
        filters: subjects.inboxFilters(partition),
        fromSeq: cursor,
        name: `${name}_${partition}`,
      };
      lags.set(partition, await countFrom(link, count));
    }
    const { leases, reports, stuck } = fleet;
    return { ...fleetOverview(manifest, fleet, nowMs, lags), leases, reports, stuck };
  }

  /** Nodes, leases, recovery reports and what is stuck, each sorted by its key. */
  async fleet(): Promise<FleetState> {
    const { link, subjects } = this.#options;
    // A key that changes while it is read is delivered again.
    const current = new Map<string, { readonly bytes: Uint8Array; readonly storedAtMs: number }>();
    const reader = await watchBucket(link, {
      bucket: subjects.fleetBucket,
      onFault: () => undefined,
      deliver: ({ key, bytes, removed, storedAtMs }) => {
        if (removed) current.delete(key);
        else current.set(key, { bytes, storedAtMs });
      },
    });
    await reader.stop();
    const nodes: (Heartbeat & { storedAtMs: number })[] = [];
    const leases: Lease[] = [];
    const reports: RecoveryReport[] = [];
    const stuck: StuckList[] = [];
    // By name: in the bucket they stand in the order of their last heartbeats.
    for (const [key, { bytes, storedAtMs }] of [...current].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const value = parseJson(bytes);
      if (key.startsWith("node."))
        take(
          nodes,
          Heartbeat.transform((node) => ({ ...node, storedAtMs })),
          value,
        );
      else if (key.startsWith("lease.")) take(leases, Lease, value);
      else if (key.startsWith("report.")) take(reports, RecoveryReport, value);
      else if (key.startsWith("stuck.")) take(stuck, StuckList, value);
    }
    return { nodes, leases, reports, stuck };
  }
}

function take<T>(into: T[], schema: z.ZodType<T>, value: unknown): void {
  const parsed = schema.safeParse(value);
  if (parsed.success) into.push(parsed.data);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // a value that nobody can read is left out, as one of another shape is
  }
}
