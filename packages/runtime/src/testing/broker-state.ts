// BrokerState — what the broker keeps for all nodes: streams, buckets, blobs, core subscribers, time.
// Owns: the shared state.  Does not own: connections (NodeLink), what the ports make of it (the Memory… stores).
//   S1 shards       partitions of a shard share one stream per kind, and so one sequence space and one memory of ids
//   S2 broker time  never goes back, whatever the clock does
import {
  parseActorKey,
  shardOf,
  subjectsOf,
  type ActorKey,
  type Ancestor,
  type PartitionScheme,
  type RuntimeFault,
  type Subjects,
} from "@holdfast/protocol";
import type { ManualClock } from "./manual-clock.ts";
import { MemoryStream, type StreamLimits } from "./memory-stream.ts";
import type { Turns } from "./turns.ts";

export interface BrokerStateOptions {
  readonly ns: string;
  readonly scheme: PartitionScheme;
  readonly generation: string;
  readonly clock: ManualClock;
  readonly turns: Turns;
  readonly dedupeWindowMs: number;
  readonly maxPayloadBytes: number;
  /** Tries of one compare-and-set before it is `unknown`. */
  readonly maxAttempts: number;
  readonly tokenOf: (bytes: Uint8Array) => string | undefined;
}

/** Streams that exist once per shard. */
export type ShardedStream = "actors" | "inbox" | "parked" | "journal";

export interface CoreMessage {
  readonly subject: string;
  readonly bytes: Uint8Array;
}

export interface OpenInbox {
  readonly node: string;
  readonly partition: string;
  readonly fail: (fault: RuntimeFault) => void;
}

/** See the invariants at the top of the file. */
export class BrokerState {
  readonly subjects: Subjects;
  readonly scheme: PartitionScheme;
  readonly turns: Turns;
  readonly maxPayloadBytes: number;
  readonly maxAttempts: number;
  readonly tokenOf: (bytes: Uint8Array) => string | undefined;
  readonly fleet: MemoryStream;
  readonly stuck: MemoryStream;
  readonly events: MemoryStream;
  readonly audit: MemoryStream;
  readonly blobs = new Map<string, Uint8Array>();
  /** Inbox readers that are open, of all nodes. */
  readonly inboxReaders = new Set<OpenInbox>();
  generation: string;
  /** What the inbox streams go on from. */
  lineage: readonly Ancestor[] = [];
  readonly #clock: ManualClock;
  readonly #dedupeWindowMs: number;
  readonly #sharded = new Map<string, MemoryStream>();
  readonly #limits = new Map<ShardedStream, StreamLimits>();
  readonly #coreListeners = new Set<{ readonly subject: string; readonly deliver: (message: CoreMessage) => void }>();
  #latestMs = 0;

  constructor(options: BrokerStateOptions) {
    this.subjects = subjectsOf(options.ns);
    this.scheme = options.scheme;
    this.turns = options.turns;
    this.maxPayloadBytes = options.maxPayloadBytes;
    this.maxAttempts = options.maxAttempts;
    this.tokenOf = options.tokenOf;
    this.generation = options.generation;
    this.#clock = options.clock;
    this.#dedupeWindowMs = options.dedupeWindowMs;
    this.fleet = this.#newStream(true);
    this.stuck = this.#newStream(true);
    this.events = this.#newStream(false);
    this.audit = this.#newStream(false);
  }

  /** S2. Unix ms. */
  nowMs(): number {
    this.#latestMs = Math.max(this.#latestMs, this.#clock.wallMs());
    return this.#latestMs;
  }

  /** The stream of a partition's shard (S1). */
  stream(kind: ShardedStream, partition: string): MemoryStream {
    const name = `${kind}/${this.shard(partition)}`;
    const known = this.#sharded.get(name);
    if (known !== undefined) return known;
    const created = this.#newStream(kind === "actors");
    created.limits = this.#limits.get(kind) ?? {};
    this.#sharded.set(name, created);
    return created;
  }

  streamOf(kind: ShardedStream, key: ActorKey): MemoryStream {
    return this.stream(kind, parseActorKey(key).partition);
  }

  shard(partition: string): number {
    return shardOf(this.scheme, partition);
  }

  actorSubject(key: ActorKey): string {
    return this.subjects.actorSubject(this.shard(parseActorKey(key).partition), key);
  }

  /** Beginning of the subjects of a partition's records and of its claim and checkpoint. */
  actorPrefix(partition: string): string {
    return `$KV.${this.subjects.actorsBucket(this.shard(partition))}.${partition}.`;
  }

  limit(kind: ShardedStream, limits: StreamLimits): void {
    this.#limits.set(kind, limits);
    for (const [name, stream] of this.#sharded) if (name.startsWith(`${kind}/`)) stream.limits = limits;
  }

  allStreams(): readonly MemoryStream[] {
    return [this.fleet, this.stuck, this.events, this.audit, ...this.#sharded.values()];
  }

  /** @param subject  a whole subject, or its beginning followed by `>` */
  listen(subject: string, deliver: (message: CoreMessage) => void): () => void {
    const listener = { subject, deliver };
    this.#coreListeners.add(listener);
    return () => this.#coreListeners.delete(listener);
  }

  /** Hands a core message to whoever listens at this moment. */
  sendCore(subject: string, bytes: Uint8Array): void {
    for (const listener of this.#coreListeners) {
      const fits = listener.subject.endsWith(">")
        ? subject.startsWith(listener.subject.slice(0, -1))
        : subject === listener.subject;
      if (fits) void this.turns.next().then(() => listener.deliver({ subject, bytes: new Uint8Array(bytes) }));
    }
  }

  #newStream(keepsLastOnly: boolean): MemoryStream {
    return new MemoryStream({ keepsLastOnly, dedupeWindowMs: this.#dedupeWindowMs, nowMs: () => this.nowMs() });
  }
}
