import { filteredHistory, publishStored, purgeBelow, type Link } from "@holdfast/jetstream";
import { parseActorKey, RuntimeFault, type ActorKey } from "@holdfast/protocol";
import type {
  InboxMessage,
  InboxPosition,
  InboxSubscription,
  MessageLog,
  PublishOutcome,
} from "@holdfast/runtime/ports";
import { blobsHeader } from "./blobs-header.ts";
import { inboxMessageReader, toInboxMessage } from "./inbox-message.ts";
import type { NamespaceStreams } from "./namespace-streams.ts";
import { recordedPosition } from "./recorded-position.ts";
import { ShardInbox } from "./shard-inbox.ts";

export interface MessageLogNotices {
  /** A reader had to stop by itself: lost data, a receiver that threw. */
  readonly onFault: (fault: RuntimeFault) => void;
  /** A stored message is of no shape that this project writes. It is skipped: nobody could ever take it. */
  readonly onUnreadable: (message: { readonly stream: string; readonly subject: string; readonly seq: number }) => void;
}

/** Inbox, control and parked messages in the streams of a namespace. */
export class NatsMessageLog implements MessageLog {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;
  readonly #notices: MessageLogNotices;
  readonly #shards = new Map<string, ShardInbox>();

  constructor(link: Link, streams: NamespaceStreams, notices: MessageLogNotices) {
    this.#link = link;
    this.#streams = streams;
    this.#notices = notices;
  }

  publish(
    lane: "inbox" | "control" | "parked",
    key: ActorKey,
    bytes: Uint8Array,
    messageId: string,
    blobs?: readonly string[],
  ): Promise<PublishOutcome> {
    const subject = this.#streams.subjects[lane](key);
    return publishStored(this.#link, { subject, bytes, messageId, headers: blobsHeader(blobs) });
  }

  /**
   * @throws RuntimeFault HF-4006 when the stream is missing or not the recorded one, HF-4007, HF-4008
   */
  async subscribe(
    partition: string,
    fromSeq: number,
    deliver: (message: InboxMessage) => void,
  ): Promise<InboxSubscription> {
    return this.#shard(partition).subscribe({ partition, fromSeq, deliver });
  }

  /** @param key of one actor, or `<partition>.>` for all of a partition */
  async fetch(
    lane: "inbox" | "parked",
    key: ActorKey,
    fromSeq: number,
    limit: number,
  ): Promise<readonly InboxMessage[]> {
    const { subjects } = this.#streams;
    const shard = this.#shardOfKey(key);
    const isInbox = lane === "inbox";
    const stream = isInbox ? subjects.inboxStream(shard) : subjects.parkedStream(shard);
    const found = await filteredHistory(this.#link, {
      stream,
      filters: isInbox
        ? [subjects.inbox(key), subjects.control(key), `hf.${subjects.ns}.in.*.${key}`]
        : [subjects.parked(key)],
      fromSeq,
      limit,
      expectedCreated: this.#streams.created(stream),
    });
    return found.flatMap((stored) => toInboxMessage(subjects, stored) ?? []);
  }

  /** @throws RuntimeFault HF-4006 when the stream is missing or not the recorded one */
  async position(partition: string): Promise<InboxPosition> {
    const stream = this.#streams.subjects.inboxStream(this.#streams.shard(partition));
    const { lastSeq, bytes, maxBytes } = await recordedPosition(this.#link, this.#streams, stream);
    const lineage = this.#streams.lineage(stream);
    const fill = maxBytes > 0 ? { fill: bytes / maxBytes } : {};
    return { generation: this.#streams.generation(stream), lastSeq, lineage, ...fill };
  }

  /**
   * @param target for `inbox` a partition, whose whole stream is trimmed: cheaper than a filtered purge, and the caller knows the lowest
   *   cursor of all its partitions; for `parked` the key of an actor
   */
  async trim(lane: "inbox" | "parked", target: string, belowSeq: number): Promise<void> {
    const { subjects } = this.#streams;
    if (lane === "inbox") {
      await purgeBelow(this.#link, { stream: subjects.inboxStream(this.#streams.shard(target)), belowSeq });
      return;
    }
    const stream = subjects.parkedStream(this.#shardOfKey(target));
    await purgeBelow(this.#link, { stream, filter: subjects.parked(target), belowSeq });
  }

  #shard(partition: string): ShardInbox {
    const { subjects } = this.#streams;
    const stream = subjects.inboxStream(this.#streams.shard(partition));
    const existing = this.#shards.get(stream);
    if (existing !== undefined) return existing;
    const shard = new ShardInbox(this.#link, {
      stream,
      expectedCreated: this.#streams.created(stream),
      filtersOf: (name) => subjects.inboxFilters(name),
      read: inboxMessageReader(subjects),
      onFault: this.#notices.onFault,
      onUnreadable: ({ subject, seq }) => this.#notices.onUnreadable({ stream, subject, seq }),
    });
    this.#shards.set(stream, shard);
    return shard;
  }

  #shardOfKey(key: ActorKey): number {
    const partition = key.slice(0, key.indexOf("."));
    return this.#streams.shard(partition === "" ? parseActorKey(key).partition : partition);
  }
}
