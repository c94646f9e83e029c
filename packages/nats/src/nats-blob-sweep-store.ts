import { blobBucket, readHeaders, type BlobBucket, type Link } from "@holdfast/jetstream";
import type { BlobSweepStore, OldBlob } from "@holdfast/runtime/ports";
import { BLOBS_HEADER } from "./blobs-header.ts";
import type { NamespaceStreams } from "./namespace-streams.ts";

/** Records are written over and over; whoever stays at the end of their stream for this long has seen each of them. ms */
const DWELL_MS = 500;

/** What names blobs in a namespace, and the removal of what nothing names. */
export class NatsBlobSweepStore implements BlobSweepStore {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;
  readonly #bucket: BlobBucket;

  constructor(link: Link, streams: NamespaceStreams) {
    this.#link = link;
    this.#streams = streams;
    this.#bucket = blobBucket(link, streams.subjects.blobsBucket);
  }

  async olderThan(beforeMs: number, fromSeq: number, limit: number, signal: AbortSignal): Promise<readonly OldBlob[]> {
    const found = await this.#bucket.olderThan(beforeMs, fromSeq, limit, signal);
    return found.map(({ name, copy, seq }) => ({ sha256: name, copy, seq }));
  }

  /**
   * In the order in which a name travels: from the record that decided a message to the inbox, to what is set aside, to what is taken out, to the journal. Who reads
   * behind it cannot miss it.
   */
  async named(visit: (sha256Prefix: string) => void, signal: AbortSignal): Promise<void> {
    const { subjects, manifest } = this.#streams;
    const kinds = [
      { streamOf: (shard: number) => subjects.actorsStream(shard), dwellMs: DWELL_MS },
      { streamOf: (shard: number) => subjects.inboxStream(shard), dwellMs: 0 },
      { streamOf: (shard: number) => subjects.parkedStream(shard), dwellMs: 0 },
      { streamOf: () => `KV_${subjects.stuckBucket}`, dwellMs: 0 },
      { streamOf: (shard: number) => subjects.journalStream(shard), dwellMs: 0 },
    ];
    for (const { streamOf, dwellMs } of kinds) {
      const streams = [...new Set(Array.from({ length: manifest.shards }, (_, shard) => streamOf(shard)))];
      const read = (stream: string): Promise<void> =>
        readHeaders(this.#link, {
          stream,
          filter: ">",
          dwellMs,
          expectedCreated: this.#streams.created(stream),
          signal,
          visit: (message) => {
            for (const prefix of message.header(BLOBS_HEADER)?.split(",") ?? []) visit(prefix);
          },
        });
      await Promise.all(streams.filter((stream) => this.#streams.created(stream) !== undefined).map(read));
    }
  }

  remove({ sha256, copy, seq }: OldBlob): Promise<void> {
    return this.#bucket.remove({ name: sha256, copy, seq });
  }
}
