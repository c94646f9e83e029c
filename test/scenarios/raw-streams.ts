import { strict as assert } from "node:assert";
import { createCodec, type Codec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { connectNats, OrderedReader, publishStored, readLast, type Link } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { parseActorKey, shardOf, subjectsOf, type Envelope, type Subjects } from "@holdfast/protocol";
import type { RowStage } from "./row-run.ts";

/** A message as an inbox stores it, and what it says. */
export interface Letter {
  readonly bytes: Uint8Array;
  readonly envelope: Envelope;
}

/** The streams of a namespace with the rights of a node, past everything that a client or a node checks. */
export class RawStreams implements AsyncDisposable {
  readonly #link: Link;
  readonly #codec: Codec = createCodec({ ref: actorRefExtension });
  readonly #subjects: Subjects;
  readonly #shardOf: (key: string) => number;
  readonly #readers: OrderedReader[] = [];

  private constructor(link: Link, { fleet, holdfast }: RowStage) {
    this.#link = link;
    this.#subjects = subjectsOf(fleet.namespace);
    this.#shardOf = (key) => shardOf(holdfast.manifest, parseActorKey(key).partition);
  }

  static async open(stage: RowStage): Promise<RawStreams> {
    const { url, user, password } = stage.cluster.nats;
    const inboxPrefix = inboxPrefixOf("node");
    return new RawStreams(
      await connectNats({ servers: [url], user, pass: password, inboxPrefix, name: "vandal" }),
      stage,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.stop()));
    await this.#link.close();
  }

  /** Keeps what other actors and jobs send to an actor from now on: its inbox forgets it once everybody has read it. */
  async letters(key: string): Promise<readonly Letter[]> {
    const kept: Letter[] = [];
    const reader = await OrderedReader.start(this.#link, {
      stream: this.#subjects.inboxStream(this.#shardOf(key)),
      filters: [this.#subjects.inbox(key)],
      fromSeq: 1,
      deliver: ({ bytes }) => kept.push({ bytes, envelope: this.#codec.decodeEnvelope(bytes) }),
      onFault: () => undefined,
    });
    this.#readers.push(reader);
    return kept;
  }

  /** Stores a message once more, or another one: no id for the broker to remember, so that only the receiver can tell. */
  async post(key: string, letter: Uint8Array | Envelope): Promise<void> {
    const bytes = letter instanceof Uint8Array ? letter : this.#codec.encodeEnvelope(letter);
    await this.#store(this.#subjects.inbox(key), bytes);
  }

  /** Bytes of a record. */
  async record(key: string): Promise<Uint8Array> {
    const shard = this.#shardOf(key);
    const stored = await readLast(
      this.#link,
      this.#subjects.actorsStream(shard),
      this.#subjects.actorSubject(shard, key),
    );
    assert.ok(stored !== undefined, `${key} has no record`);
    return Uint8Array.from(stored.bytes);
  }

  async overwrite(key: string, bytes: Uint8Array): Promise<void> {
    await this.#store(this.#subjects.actorSubject(this.#shardOf(key), key), bytes);
  }

  async #store(subject: string, bytes: Uint8Array): Promise<void> {
    const stored = await publishStored(this.#link, { subject, bytes });
    assert.equal(stored.kind, "accepted");
  }
}
