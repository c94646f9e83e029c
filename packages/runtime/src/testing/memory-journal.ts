import { encodeLifecycleEvent, type ActorKey, type EventKind, type LifecycleEvent } from "@holdfast/protocol";
import type { Journal, JournalLine, PublishOutcome } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import type { NodeLink } from "./node-link.ts";
import { publishMessage } from "./publish-message.ts";
import { untilAborted } from "./until-aborted.ts";

/** Journal of one node over the memory broker. */
export class MemoryJournal implements Journal {
  readonly #state: BrokerState;
  readonly #link: NodeLink;

  constructor(state: BrokerState, link: NodeLink) {
    this.#state = state;
    this.#link = link;
  }

  append(key: ActorKey, bytes: Uint8Array, messageId: string): Promise<PublishOutcome> {
    return publishMessage(this.#state, this.#link, {
      operation: "append",
      stream: this.#state.streamOf("journal", key),
      subject: this.#state.subjects.journal(key),
      bytes,
      messageId,
    });
  }

  read(key: ActorKey, signal: AbortSignal): Promise<readonly JournalLine[]> {
    const stream = this.#state.streamOf("journal", key);
    const subject = this.#state.subjects.journal(key);
    const lines = this.#link.read(`journal of ${key}`, () => {
      const stored = stream.messages.filter((message) => message.subject === subject);
      const seen = this.#link.dice.hits("staleReadRate") ? stored.slice(0, -1) : stored;
      return seen.map((message) => ({ seq: message.seq, bytes: new Uint8Array(message.bytes) }));
    });
    return untilAborted(signal, lines);
  }

  publishEvent(kind: EventKind, name: readonly string[], event: LifecycleEvent): Promise<PublishOutcome> {
    const { headers, data } = encodeLifecycleEvent(event);
    return publishMessage(this.#state, this.#link, {
      operation: "event",
      stream: this.#state.events,
      subject: this.#state.subjects.event(kind, name),
      bytes: new TextEncoder().encode(data),
      messageId: event.id,
      headers,
    });
  }

  audit(verb: string, bytes: Uint8Array, messageId: string): Promise<PublishOutcome> {
    return publishMessage(this.#state, this.#link, {
      operation: "event",
      stream: this.#state.audit,
      subject: this.#state.subjects.audit(verb),
      bytes,
      messageId,
    });
  }

  publishLive(key: ActorKey, bytes: Uint8Array): void {
    this.#sendCore(this.#state.subjects.live(key), bytes);
  }

  reply(subject: string, bytes: Uint8Array): void {
    this.#sendCore(subject, bytes);
  }

  #sendCore(subject: string, bytes: Uint8Array): void {
    const copy = new Uint8Array(bytes);
    void this.#link.send(() => this.#state.sendCore(subject, copy));
  }
}
