import type { ActorKey } from "@holdfast/protocol";
import type { CommitOutcome, CommitRequest, RecordStore, ScanEntry, StoredValue } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import { compareAndSet } from "./compare-and-set.ts";
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
      expectedSeq: request.expectedSeq,
      token: request.token,
      tokenOf: this.#state.tokenOf,
      maxAttempts: this.#state.maxAttempts,
    });
  }

  async scan(
    partition: string,
    fromSeq: number,
    visit: (entry: ScanEntry) => void,
    signal: AbortSignal,
  ): Promise<number> {
    const stream = this.#state.stream("actors", partition);
    const prefix = this.#state.actorPrefix(partition);
    const barrierSeq = await this.#writeBarrier(partition, signal);
    for (let cursor = fromSeq; ;) {
      await untilAborted(signal, this.#link.receivable());
      const message = stream.next(cursor, (candidate) => candidate.subject.startsWith(prefix));
      // Somebody else's later barrier may have replaced ours: whatever lies beyond our sequence ends the scan.
      if (message === undefined || message.seq >= barrierSeq) return barrierSeq;
      cursor = message.seq + 1;
      const key = message.subject.slice(prefix.length - partition.length - 1);
      if (!key.startsWith(`${partition}._`)) visit({ key, seq: message.seq, needsWork: message.needsWork });
    }
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
