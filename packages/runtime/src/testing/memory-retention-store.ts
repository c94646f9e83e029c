import { parseErasureKey, type ActorKey } from "@holdfast/protocol";
import type {
  EndedRecord,
  ErasureOrder,
  ErasureOrders,
  JournalEnd,
  RecordSurvey,
  RetentionStore,
  WantedRecords,
} from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import type { MemoryStream } from "./memory-stream.ts";
import type { NodeLink } from "./node-link.ts";

/** What may go, and orders to let it go, over the memory broker. */
export class MemoryRetentionStore implements RetentionStore, ErasureOrders {
  readonly #state: BrokerState;
  readonly #link: NodeLink;

  constructor(state: BrokerState, link: NodeLink) {
    this.#state = state;
    this.#link = link;
  }

  survey(partition: string, { isDue, fromSeq, limit }: WantedRecords): Promise<RecordSurvey> {
    const prefix = this.#state.actorPrefix(partition);
    return this.#link.read(partition, () => {
      const ended: EndedRecord[] = [];
      const keys = new Set<ActorKey>();
      const orders: ErasureOrder[] = [];
      for (const { subject, seq, storedAtMs, headers } of this.#state.stream("actors", partition).messages) {
        if (!subject.startsWith(prefix)) continue;
        const key = `${partition}.${subject.slice(prefix.length)}`;
        const ordered = parseErasureKey(key);
        if (ordered !== undefined) orders.push({ key: ordered, seq, storedAtMs });
        if (subject.startsWith("_", prefix.length)) continue;
        keys.add(key);
        const how = headers["ended"];
        const found = { key, seq, storedAtMs, isTombstone: how === "tombstone", isToErase: how === "erase" };
        if (how !== undefined && seq >= fromSeq && isDue(found)) ended.push(found);
      }
      return { ended: ended.slice(0, limit), keys, orders: orders.slice(0, limit) };
    });
  }

  removeRecord(key: ActorKey, seq: number): Promise<void> {
    return this.#purge(this.#state.streamOf("actors", key), this.#state.actorSubject(key), seq);
  }

  journaled(partition: string): Promise<readonly ActorKey[]> {
    const prefix = this.#state.subjects.journal("");
    return this.#link.read(partition, () => {
      const subjects = this.#state.stream("journal", partition).messages.map(({ subject }) => subject);
      return [...new Set(subjects)]
        .map((subject) => subject.slice(prefix.length))
        .filter((key) => key.startsWith(`${partition}.`));
    });
  }

  journalEnd(key: ActorKey): Promise<JournalEnd | undefined> {
    const subject = this.#state.subjects.journal(key);
    return this.#link.read(key, () => this.#state.streamOf("journal", key).last(subject));
  }

  removeJournal(key: ActorKey, throughSeq: number): Promise<void> {
    return this.#purge(this.#state.streamOf("journal", key), this.#state.subjects.journal(key), throughSeq);
  }

  give(key: ActorKey): Promise<void> {
    return this.#link.read(key, () => {
      this.#state.streamOf("actors", key).append({ subject: this.#orderSubject(key), bytes: new Uint8Array() });
    });
  }

  withdraw(key: ActorKey, seq: number): Promise<void> {
    return this.#purge(this.#state.streamOf("actors", key), this.#orderSubject(key), seq);
  }

  #orderSubject(key: ActorKey): string {
    return this.#state.actorSubject(key).replace(key, this.#state.subjects.erasureKey(key));
  }

  #purge(stream: MemoryStream, subject: string, throughSeq: number): Promise<void> {
    return this.#link.read(subject, () => {
      stream.purge((message) => message.subject === subject && message.seq <= throughSeq);
    });
  }
}
