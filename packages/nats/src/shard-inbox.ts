// ShardInbox: the inbox messages of every partition of one shard that this node reads.
//
// Owns: the readers of one stream, and which partition each of them serves.
// Does not own: how far a partition was handed over (PartitionInbox), what a message means.
//
//   S1  a partition that comes gets a reader of its own from its own cursor: its backlog holds up nobody else
//   S2  partitions that were read through share one reader; who comes or goes later is taken in or left out by a new one
//   S3  a reader is ended only after its successor exists and starts at or before where every partition stands (B3), so a change loses and
//       repeats nothing; one that cannot be started changes nothing
//   S4  the fault of a reader reaches every partition it serves, and the fault of a receiver its own partition only
//
// Why shared: the server wakes every consumer of a stream for every message of it. With four partitions of a shard read apart, three of
// four looked for nothing.

import { OrderedReader, streamPosition, type Link, type StreamMessage } from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { InboxMessage } from "@holdfast/runtime/ports";
import { PartitionInbox } from "./partition-inbox.ts";

export interface ShardInboxOptions {
  readonly stream: string;
  /** Creation time of the stream, when it is recorded. */
  readonly expectedCreated: string | undefined;
  readonly filtersOf: (partition: string) => readonly string[];
  /** @returns undefined for a message of no known shape */
  readonly read: (message: StreamMessage) => InboxMessage | undefined;
  /** A reader, or one of its receivers, has ended by itself. */
  readonly onFault: (fault: RuntimeFault) => void;
  readonly onUnreadable: (message: StreamMessage) => void;
}

export interface PartitionRequest {
  readonly partition: string;
  readonly fromSeq: number;
  readonly deliver: (message: InboxMessage) => void;
}

/** Partitions come and go in groups, when a node starts or leaves: one new reader for all of them. */
const SHARE_AFTER_MS = 200;
/** After a shared reader could not be started. */
const SHARE_AGAIN_MS = 5000;

export class ShardInbox {
  readonly #link: Link;
  readonly #options: ShardInboxOptions;
  readonly #members = new Set<PartitionInbox>();
  /** The shared reader and whom it reads for, those that have left meanwhile included. */
  #shared: { readonly reader: OrderedReader; readonly serves: ReadonlySet<PartitionInbox> } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isSharing = false;

  constructor(link: Link, options: ShardInboxOptions) {
    this.#link = link;
    this.#options = options;
  }

  /** S1. @throws as OrderedReader.start */
  async subscribe({ partition, fromSeq, deliver }: PartitionRequest): Promise<PartitionInbox> {
    const { stream, filtersOf } = this.#options;
    const filters = filtersOf(partition);
    const member: PartitionInbox = new PartitionInbox(this.#link, {
      partition,
      stream,
      filters,
      fromSeq,
      deliver,
      caughtUp: () => this.#shareLater(SHARE_AFTER_MS),
      left: () => this.#left(member),
    });
    this.#members.add(member);
    try {
      member.serveFrom(await this.#open([member], filters, fromSeq));
    } catch (error) {
      this.#members.delete(member);
      throw error;
    }
    return member;
  }

  #open(
    members: readonly PartitionInbox[],
    filters: readonly string[],
    fromSeq: number,
    seen?: OrderedReader["seen"],
  ): Promise<OrderedReader> {
    const { stream, expectedCreated, read, onFault, onUnreadable } = this.#options;
    const byPartition = Map.groupBy(members, ({ partition }) => partition);
    return OrderedReader.start(this.#link, {
      stream,
      filters,
      fromSeq,
      expectedCreated,
      seen,
      onFault,
      deliver: (stored) => {
        const message = read(stored);
        if (message === undefined) {
          onUnreadable(stored);
          for (const member of members) member.pass(stored.seq);
          return;
        }
        const receivers = byPartition.get(partitionOf(message));
        if (receivers !== undefined) for (const member of receivers) member.take(message);
      },
    });
  }

  async #left(member: PartitionInbox): Promise<void> {
    this.#members.delete(member);
    if (this.#members.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    if (member.reader !== undefined) await this.#endUnused([member.reader]);
    if (this.#needsOther(this.#sharing())) this.#shareLater(SHARE_AFTER_MS);
  }

  async #endUnused(readers: Iterable<OrderedReader>): Promise<void> {
    const used = new Set([...this.#members].map(({ reader }) => reader));
    const unused = [...new Set(readers)].filter((reader) => !used.has(reader));
    if (this.#shared !== undefined && unused.includes(this.#shared.reader)) this.#shared = undefined;
    await Promise.all(unused.map((reader) => reader.stop()));
  }

  /** Who should read together now. */
  #sharing(): readonly PartitionInbox[] {
    return [...this.#members].filter(({ isCaughtUp, isOver }) => isCaughtUp && !isOver);
  }

  #needsOther(members: readonly PartitionInbox[]): boolean {
    if (this.#shared === undefined) return members.length > 1;
    const { serves } = this.#shared;
    return members.length !== serves.size || members.some((member) => !serves.has(member));
  }

  #shareLater(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (!this.#isSharing) void this.#share();
    }, delayMs);
  }

  /** S2, S3. */
  async #share(): Promise<void> {
    this.#isSharing = true;
    let againMs = SHARE_AFTER_MS;
    try {
      const members = this.#sharing();
      if (this.#needsOther(members)) await this.#readTogether(members);
    } catch (error) {
      againMs = SHARE_AGAIN_MS; // those that read apart go on reading apart
      if (error instanceof RuntimeFault && error.code === "HF-4006") this.#failAll(error);
    }
    this.#isSharing = false;
    if (this.#needsOther(this.#sharing())) this.#shareLater(againMs);
  }

  async #readTogether(candidates: readonly PartitionInbox[]): Promise<void> {
    // First where the stream ends, then that everybody has everything up to there: also who got nothing for days stands at that place then.
    const { lastSeq } = await streamPosition(this.#link, this.#options.stream);
    const noEnd = new AbortController().signal;
    await Promise.all(candidates.map((member) => member.readThrough(noEnd).catch(unlessOver(member))));
    const members = candidates.filter(({ isOver }) => !isOver);
    if (!this.#needsOther(members)) return;
    const former = members.flatMap(({ reader }) => reader ?? []);
    const filters = [...new Set(members.flatMap((member) => member.filters))];
    const seen = former.map((reader) => reader.seen).reduce((a, b) => (a.seq >= b.seq ? a : b));
    const reader = await this.#open(members, filters, lastSeq + 1, seen);
    for (const member of members) if (!member.isOver) member.serveFrom(reader);
    this.#shared = { reader, serves: new Set(members) };
    await this.#endUnused([...former, reader]);
  }

  #failAll(fault: RuntimeFault): void {
    this.#options.onFault(fault);
    for (const member of this.#members) member.fail(fault);
  }
}

const partitionOf = ({ key }: InboxMessage): string => key.slice(0, key.indexOf("."));

/** Who left meanwhile is in nobody's way. */
const unlessOver =
  (member: PartitionInbox) =>
  (error: unknown): void => {
    if (!member.isOver) throw error;
  };
