import { barrierScan, compareAndSet, readLast, type Link } from "@holdfast/jetstream";
import { parseActorKey, type ActorKey } from "@holdfast/protocol";
import type { CommitOutcome, CommitRequest, RecordStore, ScanEntry, StoredValue } from "@holdfast/runtime/ports";
import type { NamespaceStreams } from "./namespace-streams.ts";

/** Whether a record has something to do, readable without its payload. */
const WORK_HEADER = "Hf-Work";
const nothing = new Uint8Array(0);

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
      headers: { [WORK_HEADER]: request.needsWork ? "1" : "0" },
    });
  }

  /** @throws the reason of `signal`; RuntimeFault HF-4006 when the stream lost data */
  scan(partition: string, fromSeq: number, visit: (entry: ScanEntry) => void, signal: AbortSignal): Promise<number> {
    const { subjects } = this.#streams;
    const shard = this.#streams.shard(partition);
    const stream = subjects.actorsStream(shard);
    const prefix = subjects.actorSubject(shard, "");
    return barrierScan(this.#link, {
      stream,
      filter: subjects.actorSubject(shard, `${partition}.>`),
      fromSeq,
      barrierSubject: subjects.actorSubject(shard, subjects.claimKey(partition)),
      barrierBytes: nothing,
      headersOnly: true,
      expectedCreated: this.#streams.created(stream),
      signal,
      visit: (message) => {
        const key = message.subject.slice(prefix.length);
        // Barriers and checkpoints: no actor type starts with an underscore.
        if (key.startsWith("_", partition.length + 1)) return;
        // A value that says nothing was not written by this store: looking at it once too often is the safe side.
        visit({ key, seq: message.seq, needsWork: message.header(WORK_HEADER) !== "0" });
      },
    });
  }

  #locate(key: ActorKey): { readonly stream: string; readonly subject: string } {
    const shard = this.#streams.shard(parseActorKey(key).partition);
    const { subjects } = this.#streams;
    return { stream: subjects.actorsStream(shard), subject: subjects.actorSubject(shard, key) };
  }
}
