import { barrierScan, compareAndSet, readLast, type Link } from "@holdfast/jetstream";
import { parseActorKey, type ActorKey } from "@holdfast/protocol";
import type { CommitOutcome, CommitRequest, RecordStore, ScanRequest, StoredValue } from "@holdfast/runtime/ports";
import { blobsHeader } from "./blobs-header.ts";
import { jsonToken } from "./json-token.ts";
import { ENDED_HEADER, WAITS_HEADER, WORK_HEADER } from "./record-headers.ts";
import type { NamespaceStreams } from "./namespace-streams.ts";
import { recordedPosition } from "./recorded-position.ts";

const nothing = new Uint8Array(0);
/**
 * A filter costs the server a walk over all keys of the bucket (12 ms at a million), a message that is read in vain 7 µs here. So a span of
 * this many sequences is read without one.
 */
const CHEAP_SPAN = 2000;
/** Values are read along with the headers over at most this many sequences. */
const VALUES_SPAN = 20_000;

/** Actor records in the key-value buckets of a namespace. */
export class NatsRecordStore implements RecordStore {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;
  readonly #tokenOf: (bytes: Uint8Array) => string | undefined;

  /** @param tokenOf token of a stored record's clear header; what it throws counts as no token */
  constructor(link: Link, streams: NamespaceStreams, tokenOf: (bytes: Uint8Array) => string | undefined) {
    this.#link = link;
    this.#streams = streams;
    this.#tokenOf = tokenOf;
  }

  /** @throws RuntimeFault HF-4008 when nobody answered, HF-4006 when the stream is gone */
  async load(key: ActorKey): Promise<StoredValue | undefined> {
    const { stream, subject } = this.#locate(key);
    const stored = await readLast(this.#link, stream, subject);
    return stored === undefined ? undefined : { bytes: stored.bytes, seq: stored.seq };
  }

  /** @throws RuntimeFault HF-2004 when the bytes are too many for the bucket, HF-4007 when writing is not allowed */
  commit(request: CommitRequest): Promise<CommitOutcome> {
    const { stream, subject } = this.#locate(request.key);
    return compareAndSet(this.#link, {
      stream,
      subject,
      bytes: request.bytes,
      expectedSeq: request.expectedSeq,
      token: request.token,
      tokenOf: this.#tokenOf,
      headers: {
        [WORK_HEADER]: request.needsWork ? "1" : "0",
        ...(request.waits === true && { [WAITS_HEADER]: "1" }),
        ...endedHeader(request),
        ...blobsHeader(request.blobs),
      },
    });
  }

  /**
   * One reader serves all partitions of the shard that are asked for.
   * @throws the reason of `signal`; RuntimeFault HF-4006 when the stream lost data
   */
  scan({ parts, wantsValues = false, visit, signal }: ScanRequest): Promise<number> {
    const { subjects } = this.#streams;
    const first = parts[0]?.partition ?? "";
    const shard = this.#streams.shard(first);
    const stream = subjects.actorsStream(shard);
    const prefix = subjects.actorSubject(shard, "");
    const fromSeqs = new Map(parts.map(({ partition, fromSeq }) => [partition, fromSeq]));
    const fromSeq = Math.min(...fromSeqs.values());
    const own = subjects.actorSubject(shard, `${first}.>`);
    const whole = subjects.actorSubject(shard, ">");
    return barrierScan(this.#link, {
      stream,
      filter: own,
      fromSeq,
      barrierSubject: subjects.actorSubject(shard, subjects.claimKey(first)),
      barrierBytes: nothing,
      headersOnly: true,
      narrow: (barrierSeq) => ({
        filter: parts.length > 1 || barrierSeq - fromSeq <= CHEAP_SPAN ? whole : own,
        headersOnly: !wantsValues || barrierSeq - fromSeq > VALUES_SPAN,
      }),
      expectedCreated: this.#streams.created(stream),
      signal,
      visit: (message) => {
        const key = message.subject.slice(prefix.length);
        const partition = key.slice(0, key.indexOf("."));
        const from = fromSeqs.get(partition);
        // Barriers and checkpoints: no actor type starts with an underscore.
        if (from === undefined || message.seq < from || key.startsWith("_", partition.length + 1)) return;
        // A value that says nothing was not written by this store: looking at it once too often is the safe side.
        const needsWork = message.header(WORK_HEADER) !== "0";
        const bytes = needsWork && message.bytes.length > 0 ? message.bytes : undefined;
        const waits = message.header(WAITS_HEADER) === "1";
        visit({
          key,
          seq: message.seq,
          needsWork,
          ...(waits && { waits }),
          ...(bytes !== undefined && { bytes }),
        });
      },
    });
  }

  /** @throws RuntimeFault HF-4006 when the bucket is missing or not the recorded one */
  async lastSeq(partition: string): Promise<number> {
    const stream = this.#streams.subjects.actorsStream(this.#streams.shard(partition));
    return (await recordedPosition(this.#link, this.#streams, stream)).lastSeq;
  }

  /** @throws RuntimeFault HF-4005 when the manifest has none for the stream */
  generation(partition: string): string {
    return this.#streams.generation(this.#streams.subjects.actorsStream(this.#streams.shard(partition)));
  }

  /** @throws as load */
  async loadCheckpoint(partition: string): Promise<StoredValue | undefined> {
    const { stream, subject } = this.#locateCheckpoint(partition);
    const stored = await readLast(this.#link, stream, subject);
    return stored === undefined ? undefined : { bytes: stored.bytes, seq: stored.seq };
  }

  /** @throws as commit */
  storeCheckpoint(partition: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome> {
    const { stream, subject } = this.#locateCheckpoint(partition);
    return compareAndSet(this.#link, { stream, subject, bytes, expectedSeq, token, tokenOf: jsonToken });
  }

  #locateCheckpoint(partition: string): { readonly stream: string; readonly subject: string } {
    const { subjects } = this.#streams;
    const shard = this.#streams.shard(partition);
    return {
      stream: subjects.actorsStream(shard),
      subject: subjects.actorSubject(shard, subjects.checkpointKey(partition)),
    };
  }

  #locate(key: ActorKey): { readonly stream: string; readonly subject: string } {
    const shard = this.#streams.shard(parseActorKey(key).partition);
    const { subjects } = this.#streams;
    return { stream: subjects.actorsStream(shard), subject: subjects.actorSubject(shard, key) };
  }
}

const endedHeader = ({ ended }: CommitRequest): Readonly<Record<string, string>> =>
  ended === undefined ? {} : { [ENDED_HEADER]: ended };
