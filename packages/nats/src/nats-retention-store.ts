import { barrierScan, listSubjects, purgeBelow, readLast, type Link } from "@holdfast/jetstream";
import { parseActorKey, parseErasureKey, type ActorKey } from "@holdfast/protocol";
import type {
  EndedRecord,
  ErasureOrder,
  JournalEnd,
  RecordSurvey,
  RetentionStore,
  WantedRecords,
} from "@holdfast/runtime/ports";
import type { NamespaceStreams } from "./namespace-streams.ts";
import { ENDED_HEADER } from "./record-headers.ts";

const nothing = new Uint8Array(0);

/** Removes records and journals for good: a purge of one subject, never a deletion marker, which `create` would pass over (F9). */
export class NatsRetentionStore implements RetentionStore {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;

  constructor(link: Link, streams: NamespaceStreams) {
    this.#link = link;
    this.#streams = streams;
  }

  /** @throws the reason of `signal`; RuntimeFault HF-4006 when the stream lost data */
  async survey(
    partition: string,
    { isDue, fromSeq, limit }: WantedRecords,
    signal: AbortSignal,
  ): Promise<RecordSurvey> {
    const { subjects } = this.#streams;
    const shard = this.#streams.shard(partition);
    const stream = subjects.actorsStream(shard);
    const prefix = subjects.actorSubject(shard, "");
    const ended = new Map<ActorKey, EndedRecord>();
    const keys = new Set<ActorKey>();
    const orders = new Map<ActorKey, ErasureOrder>();
    await barrierScan(this.#link, {
      stream,
      filter: subjects.actorSubject(shard, `${partition}.>`),
      fromSeq: 1,
      barrierSubject: subjects.actorSubject(shard, subjects.claimKey(partition)),
      barrierBytes: nothing,
      headersOnly: true,
      expectedCreated: this.#streams.created(stream),
      signal,
      visit: (message) => {
        const { subject, seq, storedAtMs } = message;
        const key = subject.slice(prefix.length);
        if (key.startsWith("_", partition.length + 1)) {
          const ordered = parseErasureKey(key);
          if (ordered !== undefined && orders.size < limit) orders.set(ordered, { key: ordered, seq, storedAtMs });
          return;
        }
        keys.add(key);
        const how = message.header(ENDED_HEADER);
        if (how === undefined || seq < fromSeq || ended.size >= limit) return;
        const record: EndedRecord = {
          key,
          seq,
          storedAtMs,
          isTombstone: how === "tombstone",
          isToErase: how === "erase",
        };
        if (isDue(record)) ended.set(key, record);
      },
    });
    return { ended: [...ended.values()], keys, orders: [...orders.values()] };
  }

  async removeRecord(key: ActorKey, seq: number): Promise<void> {
    const shard = this.#shardOf(key);
    const { subjects } = this.#streams;
    const filter = subjects.actorSubject(shard, key);
    await purgeBelow(this.#link, { stream: subjects.actorsStream(shard), filter, belowSeq: seq + 1 });
  }

  async journaled(partition: string, signal: AbortSignal): Promise<readonly ActorKey[]> {
    const { subjects } = this.#streams;
    const stream = subjects.journalStream(this.#streams.shard(partition));
    const prefix = subjects.journal("");
    const found = await listSubjects(this.#link, { stream, filter: subjects.journal(`${partition}.>`), signal });
    return found.map((subject) => subject.slice(prefix.length));
  }

  async journalEnd(key: ActorKey): Promise<JournalEnd | undefined> {
    const { subjects } = this.#streams;
    const stored = await readLast(this.#link, subjects.journalStream(this.#shardOf(key)), subjects.journal(key));
    return stored === undefined ? undefined : { seq: stored.seq, bytes: stored.bytes, storedAtMs: stored.storedAtMs };
  }

  async removeJournal(key: ActorKey, throughSeq: number): Promise<void> {
    const { subjects } = this.#streams;
    const stream = subjects.journalStream(this.#shardOf(key));
    await purgeBelow(this.#link, { stream, filter: subjects.journal(key), belowSeq: throughSeq + 1 });
  }

  #shardOf(key: ActorKey): number {
    return this.#streams.shard(parseActorKey(key).partition);
  }
}
