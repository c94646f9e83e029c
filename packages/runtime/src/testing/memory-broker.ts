// MemoryBroker — the broker as an adversary: one shared state, several nodes, everything that a real one may do to them.
// Owns: the nodes' connections and what befalls them.  Does not own: the state (BrokerState), the ports (Memory… stores).
//   B1 truth        an outcome is never a lie: committed = stored, stale and refused = not stored, unknown = either
//   B2 repeatable   same seeds and same calls, same run; time comes from the clock, delays are counted in turns
//   B3 incarnations connecting again under a name gives a new connection; what befalls the name befalls all its living ones
import {
  tryDecodeLifecycleEvent,
  type ActorKey,
  type Ancestor,
  type PartitionScheme,
  type Principal,
  type RuntimeFault,
} from "@holdfast/protocol";
import type {
  BlobStore,
  ErasureOrders,
  FleetRegistry,
  InboxMessage,
  Journal,
  JournalLine,
  MessageLog,
  PublishOutcome,
  RecordStore,
  RetentionStore,
  StoredValue,
} from "../ports/index.ts";
import { BrokerState, type CoreMessage, type ShardedStream } from "./broker-state.ts";
import { FaultDice, FaultScript, type FaultRates } from "./fault-plan.ts";
import { ManualClock } from "./manual-clock.ts";
import { MemoryBlobStore } from "./memory-blob-store.ts";
import { jsonToken, MemoryFleetRegistry } from "./memory-fleet-registry.ts";
import { MemoryJournal } from "./memory-journal.ts";
import { MemoryMessageLog, readInboxMessage } from "./memory-message-log.ts";
import { MemoryRecordStore } from "./memory-record-store.ts";
import { MemoryRetentionStore } from "./memory-retention-store.ts";
import type { StreamLimits } from "./memory-stream.ts";
import { NodeLink } from "./node-link.ts";
import { publishMessage } from "./publish-message.ts";
import { Turns } from "./turns.ts";

export interface MemoryBrokerOptions {
  /** Default `test`. */
  readonly ns?: string;
  /** Default: pool `d` with 32 partitions, 2 shards. */
  readonly scheme?: PartitionScheme;
  /** Of the inbox streams. Default `g1`. */
  readonly generation?: string;
  /** Broker time. Default: a clock of its own. */
  readonly clock?: ManualClock;
  /** For how long a message id is remembered, ms. Default 120,000. */
  readonly dedupeWindowMs?: number;
  /** Default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /** Tries of one compare-and-set before it is `unknown`. Default 8. */
  readonly maxAttempts?: number;
  /** Token inside a stored record. Default: the field `token` of a JSON object. */
  readonly tokenOf?: (bytes: Uint8Array) => string | undefined;
}

/** The ports of one node. */
export interface NodePorts {
  readonly records: RecordStore;
  readonly log: MessageLog;
  readonly journal: Journal;
  readonly fleet: FleetRegistry;
  readonly stuck: FleetRegistry;
  readonly blobs: BlobStore;
}

/** A connected node; `link` is for aiming at one of several incarnations of a name. */
export interface ConnectedNode extends NodePorts {
  readonly link: NodeLink;
  /** For a node that is to remove what nobody needs any more. */
  readonly removal: RetentionStore & ErasureOrders;
}

/** A public event as a service would get it. */
export interface PublishedEvent {
  readonly subject: string;
  readonly event: unknown;
}

/** See the invariants at the top of the file. */
export class MemoryBroker {
  readonly clock: ManualClock;
  /** One-shot faults, aimed at single requests. */
  readonly faults = new FaultScript();
  readonly #state: BrokerState;
  readonly #turns = new Turns();
  readonly #outside: NodeLink;
  #links: readonly NodeLink[] = [];

  constructor(options: MemoryBrokerOptions = {}) {
    this.clock = options.clock ?? new ManualClock();
    this.clock.watchBusy(() => !this.#turns.isQuiet);
    this.#state = new BrokerState({
      ns: options.ns ?? "test",
      scheme: options.scheme ?? { pools: { d: 32 }, shards: 2 },
      generation: options.generation ?? "g1",
      clock: this.clock,
      turns: this.#turns,
      dedupeWindowMs: options.dedupeWindowMs ?? 120_000,
      maxPayloadBytes: options.maxPayloadBytes ?? 1_048_576,
      maxAttempts: options.maxAttempts ?? 8,
      tokenOf: options.tokenOf ?? jsonToken,
    });
    this.#outside = this.#link("outside", {});
  }

  get ns(): string {
    return this.#state.subjects.ns;
  }

  get scheme(): PartitionScheme {
    return this.#state.scheme;
  }

  /** Connects a node under a name; B3. */
  connect(node: string, faults: FaultRates = {}): ConnectedNode {
    const link = this.#link(node, faults);
    this.#links = [...this.#links, link];
    return {
      link,
      records: new MemoryRecordStore(this.#state, link),
      log: new MemoryMessageLog(this.#state, link),
      journal: new MemoryJournal(this.#state, link),
      fleet: new MemoryFleetRegistry(this.#state, link),
      stuck: new MemoryFleetRegistry(this.#state, link, this.#state.stuck),
      blobs: new MemoryBlobStore(this.#state, link),
      removal: new MemoryRetentionStore(this.#state, link),
    };
  }

  /** What a client does: publishes on the outside subject of an actor, as the principal its permissions bind it to. */
  publishOutside(
    principal: Pick<Principal, "kind" | "id">,
    key: ActorKey,
    bytes: Uint8Array,
    messageId: string,
  ): Promise<PublishOutcome> {
    return publishMessage(this.#state, this.#outside, {
      operation: "publish",
      stream: this.#state.streamOf("inbox", key),
      subject: this.#state.subjects.outside(principal, key),
      bytes,
      messageId,
    });
  }

  /** Subscribes to core messages. @param subject a whole subject, or its beginning followed by `>` @returns stop */
  listen(subject: string, deliver: (message: CoreMessage) => void): () => void {
    return this.#state.listen(subject, deliver);
  }

  /** A stopped process: nothing of it leaves, nothing reaches it, until resumed. What had left is applied. */
  pauseNode(node: string): void {
    for (const link of this.#living(node)) link.pause();
  }

  resumeNode(node: string): void {
    for (const link of this.#living(node)) link.resume();
  }

  /** A killed process: none of its calls settles any more, nothing of it is applied but late writes. */
  killNode(node: string): void {
    for (const link of this.#living(node)) link.kill();
  }

  disconnectNode(node: string): void {
    for (const link of this.#living(node)) link.disconnect();
  }

  reconnectNode(node: string): void {
    for (const link of this.#living(node)) link.reconnect();
  }

  /** The readers of a partition's inbox end by themselves, as after lost data. @returns how many there were */
  failInbox(node: string, partition: string, fault: RuntimeFault): number {
    const found = [...this.#state.inboxReaders].filter((open) => open.node === node && open.partition === partition);
    for (const open of found) open.fail(fault);
    return found.length;
  }

  /** Kills and starts the server: answers on their way are lost, ids are learnt again from what is still stored. */
  restart(): void {
    for (const link of this.#links) if (!link.isDead) link.blink();
    for (const stream of this.#state.allStreams()) stream.relearnIds();
  }

  /** As if the window of every message id had passed. */
  forgetMessageIds(): void {
    for (const stream of this.#state.allStreams()) stream.forgetIds();
  }

  /** A record is gone, as after a restored bucket that is older than its actor. */
  loseRecord(key: ActorKey): void {
    const subject = this.#state.actorSubject(key);
    this.#state.streamOf("actors", key).purge((message) => message.subject === subject);
  }

  /** The bucket with a partition's records is restored from a copy that ended at `lastSeq`. */
  restoreRecords(partition: string, lastSeq: number): void {
    this.#state.stream("actors", partition).goBackTo(lastSeq);
  }

  /** The power loss of class P: the inbox stream of a partition ends at `lastSeq` again, and goes on from there. */
  loseInboxTail(partition: string, lastSeq: number): void {
    this.#state.stream("inbox", partition).loseTail(lastSeq);
  }

  /**
   * What an operator does after such a loss.
   * @param lineage  what the inbox streams go on from: a restored copy does, one that was created anew does not
   */
  setGeneration(generation: string, lineage: readonly Ancestor[] = []): void {
    this.#state.generation = generation;
    this.#state.lineage = lineage;
  }

  /** Streams of this kind refuse what does not fit. `{}` lifts the limits. */
  limit(kind: ShardedStream, limits: StreamLimits): void {
    this.#state.limit(kind, limits);
  }

  /** Changes one byte of a stored blob; an empty or missing one is left alone. */
  damageBlob(sha256: string): void {
    const stored = this.#state.blobs.get(sha256);
    if (stored !== undefined) stored[0] = (stored[0] ?? 0) ^ 0xff;
  }

  loseBlob(sha256: string): void {
    this.#state.blobs.delete(sha256);
  }

  /** Every value that a record ever had, oldest first. */
  writesOf(key: ActorKey): readonly StoredValue[] {
    const subject = this.#state.actorSubject(key);
    const writes = this.#state.streamOf("actors", key).writes.filter((write) => write.subject === subject);
    return writes.map(({ seq, bytes }) => ({ seq, bytes: new Uint8Array(bytes) }));
  }

  /** Every message that the inbox or parked stream of a key ever stored, oldest first, trimmed ones too. */
  messagesOf(lane: "inbox" | "parked", key: ActorKey): readonly InboxMessage[] {
    return this.#state
      .streamOf(lane, key)
      .writes.map((message) => readInboxMessage(this.#state, message))
      .flatMap((message) => (message?.key === key ? [message] : []));
  }

  journalOf(key: ActorKey): readonly JournalLine[] {
    const subject = this.#state.subjects.journal(key);
    const lines = this.#state.streamOf("journal", key).messages.filter((message) => message.subject === subject);
    return lines.map(({ seq, bytes }) => ({ seq, bytes: new Uint8Array(bytes) }));
  }

  events(): readonly PublishedEvent[] {
    return this.#state.events.messages.map(({ subject, bytes, headers }) => {
      const decoded = tryDecodeLifecycleEvent((name) => headers[name], new TextDecoder().decode(bytes));
      return { subject, event: decoded.kind === "event" ? decoded.event : decoded };
    });
  }

  /** What the audit stream holds, oldest first. */
  audited(): readonly PublishedEvent[] {
    return this.#state.audit.messages.map(({ subject, bytes }) => {
      const event: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return { subject, event };
    });
  }

  #link(node: string, rates: FaultRates): NodeLink {
    return new NodeLink(node, { dice: new FaultDice(node, rates), script: this.faults, turns: this.#turns });
  }

  #living(node: string): readonly NodeLink[] {
    return this.#links.filter((link) => link.node === node && !link.isDead);
  }
}
