import { publishStored, subjectHistory, type Link } from "@holdfast/jetstream";
import {
  encodeLifecycleEvent,
  parseActorKey,
  type ActorKey,
  type EventKind,
  type LifecycleEvent,
} from "@holdfast/protocol";
import type { Journal, JournalLine, PublishOutcome } from "@holdfast/runtime/ports";
import { blobsHeader } from "./blobs-header.ts";
import type { NamespaceStreams } from "./namespace-streams.ts";

const encoder = new TextEncoder();

/** Journals, public events and live messages of a namespace. */
export class NatsJournal implements Journal {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;

  constructor(link: Link, streams: NamespaceStreams) {
    this.#link = link;
    this.#streams = streams;
  }

  append(key: ActorKey, bytes: Uint8Array, messageId: string, blobs?: readonly string[]): Promise<PublishOutcome> {
    const subject = this.#streams.subjects.journal(key);
    return publishStored(this.#link, { subject, bytes, messageId, headers: blobsHeader(blobs) });
  }

  /** @throws the reason of `signal`; RuntimeFault HF-4008 when nobody answered, HF-4006 when the stream lost data */
  async read(key: ActorKey, signal: AbortSignal): Promise<readonly JournalLine[]> {
    const { subjects } = this.#streams;
    const stream = subjects.journalStream(this.#streams.shard(parseActorKey(key).partition));
    const messages = await subjectHistory(this.#link, {
      stream,
      subject: subjects.journal(key),
      expectedCreated: this.#streams.created(stream),
      signal,
    });
    return messages.map(({ seq, bytes }) => ({ seq, bytes }));
  }

  publishEvent(kind: EventKind, name: readonly string[], event: LifecycleEvent): Promise<PublishOutcome> {
    const { headers, data } = encodeLifecycleEvent(event);
    const subject = this.#streams.subjects.event(kind, name);
    return publishStored(this.#link, { subject, bytes: encoder.encode(data), messageId: event.id, headers });
  }

  audit(verb: string, bytes: Uint8Array, messageId: string): Promise<PublishOutcome> {
    return publishStored(this.#link, { subject: this.#streams.subjects.audit(verb), bytes, messageId });
  }

  publishLive(key: ActorKey, bytes: Uint8Array): void {
    this.#link.publish(this.#streams.subjects.live(key), bytes);
  }

  reply(subject: string, bytes: Uint8Array): void {
    this.#link.publish(subject, bytes);
  }
}
