import type { ActorKey } from "@holdfast/protocol";
import type { CommitOutcome, CommitRequest, RecordStore, ScanRequest, StoredValue } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import { compareAndSet } from "./compare-and-set.ts";
import { jsonToken } from "./memory-fleet-registry.ts";
import type { NodeLink } from "./node-link.ts";
import { untilAborted } from "./until-aborted.ts";

/**
 * RecordStore of one node over the memory broker.
 * A scan reads the live bucket message by message, like a consumer: a record that is replaced behind the barrier before the reader comes to it
 * is not seen by this scan, but by one that starts at its barrier.
 */
export class MemoryRecordStore implements RecordStore {
  readonly #state: BrokerState;
  readonly #link: NodeLink;

  constructor(state: BrokerState, link: NodeLink) {
    this.#state = state;
    this.#link = link;
  }

  load(key: ActorKey): Promise<StoredValue | undefined> {
    const stream = this.#state.streamOf("actors", key);
    const subject = this.#state.actorSubject(key);
    return this.#link.read(key, () => {
      const stored = this.#link.dice.hits("staleReadRate")
        ? stream.writes.filter((write) => write.subject === subject).at(-2)
        : stream.last(subject);
      return stored === undefined ? undefined : { bytes: new Uint8Array(stored.bytes), seq: stored.seq };
    });
  }

  commit(request: CommitRequest): Promise<CommitOutcome> {
    return compareAndSet(this.#link, {
      operation: "commit",
      about: request.key,
      stream: this.#state.streamOf("actors", request.key),
      subject: this.#state.actorSubject(request.key),
      bytes: request.bytes,
      needsWork: request.needsWork,
      waits: request.waits ?? false,
      ...(request.ended !== undefined && { headers: { ended: request.ended } }),
      expectedSeq: request.expectedSeq,
      token: request.token,
      tokenOf: this.#state.tokenOf,
      maxAttempts: this.#state.maxAttempts,
    });
  }

  async scan({ parts, wantsValues = false, visit, signal }: ScanRequest): Promise<number> {
    const fromSeqs = new Map(parts.map(({ partition, fromSeq }) => [partition, fromSeq]));
    const first = parts[0]?.partition ?? "";
    const stream = this.#state.stream("actors", first);
    const bucket = this.#state.actorPrefix(first).slice(0, -first.length - 1);
    const barrierSeq = await this.#writeBarrier(first, signal);
    for (let cursor = Math.min(...fromSeqs.values()); ;) {
      await untilAborted(signal, this.#link.receivable());
      const message = stream.next(cursor, ({ subject }) => fromSeqs.has(partitionOf(subject.slice(bucket.length))));
      // Somebody else's later barrier may have replaced ours: whatever lies beyond our sequence ends the scan.
      if (message === undefined || message.seq >= barrierSeq) return barrierSeq;
      cursor = message.seq + 1;
      const key = message.subject.slice(bucket.length);
      const partition = partitionOf(key);
      if (key.startsWith("_", partition.length + 1) || message.seq < (fromSeqs.get(partition) ?? 0)) continue;
      const bytes = wantsValues && message.needsWork ? new Uint8Array(message.bytes) : undefined;
      const { seq, needsWork, waits } = message;
      visit({ key, seq, needsWork, ...(waits && { waits }), ...(bytes !== undefined && { bytes }) });
    }
  }

  lastSeq(partition: string): Promise<number> {
    return this.#link.read(partition, () => this.#state.stream("actors", partition).lastSeq);
  }

  generation(): string {
    return this.#state.generation;
  }

  loadCheckpoint(partition: string): Promise<StoredValue | undefined> {
    const subject = this.#checkpointSubject(partition);
    return this.#link.read(subject, () => {
      const stored = this.#state.stream("actors", partition).last(subject);
      return stored === undefined ? undefined : { bytes: new Uint8Array(stored.bytes), seq: stored.seq };
    });
  }

  storeCheckpoint(partition: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome> {
    return compareAndSet(this.#link, {
      operation: "checkpoint",
      about: this.#state.subjects.checkpointKey(partition),
      stream: this.#state.stream("actors", partition),
      subject: this.#checkpointSubject(partition),
      bytes,
      needsWork: false,
      expectedSeq,
      token,
      tokenOf: jsonToken,
      maxAttempts: this.#state.maxAttempts,
    });
  }

  #checkpointSubject(partition: string): string {
    const { subjects } = this.#state;
    return `$KV.${subjects.actorsBucket(this.#state.shard(partition))}.${subjects.checkpointKey(partition)}`;
  }

  async #writeBarrier(partition: string, signal: AbortSignal): Promise<number> {
    const stream = this.#state.stream("actors", partition);
    const key = this.#state.subjects.claimKey(partition);
    const subject = `$KV.${this.#state.subjects.actorsBucket(this.#state.shard(partition))}.${key}`;
    for (;;) {
      await untilAborted(signal, this.#link.connected());
      const answer = await untilAborted(
        signal,
        this.#link.request({
          operation: "claim",
          about: key,
          apply: () => stream.append({ subject, bytes: new Uint8Array() }),
        }),
      );
      if (answer.kind === "answered" && answer.value.kind === "stored") return answer.value.seq;
      await untilAborted(signal, this.#link.backOff(1));
    }
  }
}

const partitionOf = (key: string): string => key.slice(0, key.indexOf("."));
