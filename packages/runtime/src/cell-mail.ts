import { RuntimeFault, type MessageOutcome, type ParentLink } from "@holdfast/protocol";
import { blobsOfEnvelope } from "./blobs/named-blobs.ts";
import type { CellHost, NodeServices } from "./cell-host.ts";
import { errorEvent } from "./cell-items.ts";
import { readMessage, withRoles, type ReadMessage } from "./message-reading.ts";
import { encodeParked } from "./parked-message.ts";
import { ParkedPages } from "./parked-pages.ts";
import type { InboxMessage } from "./ports/index.ts";
import { markOf } from "./quarantine/quarantine.ts";
import { unreadableMessage } from "./quarantine/unreadable-message.ts";

/**
 * Messages of one actor before and after they are applied: reading, answering, setting aside.
 * A message that cannot be applied now is copied to the parked stream, and only then counts as considered.
 */
export class CellMail {
  /** What was set aside before. */
  readonly parked: ParkedPages;
  readonly #key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;

  constructor(key: string, services: NodeServices, host: CellHost) {
    this.#key = key;
    this.#services = services;
    this.#host = host;
    this.parked = new ParkedPages(key, services, host);
  }

  /** @returns why not, when the bytes are not an envelope: HF-2003 when a newer build may read them */
  read(message: InboxMessage): ReadMessage | RuntimeFault {
    const { codec, telemetry, settings } = this.#services;
    try {
      return readMessage(codec, withRoles(message, settings.roles), this.#host.generation);
    } catch (error) {
      const fault = unreadableMessage(codec, message, error);
      telemetry.error("message.unreadable", { key: this.#key, seq: message.seq, code: fault.code });
      return fault;
    }
  }

  /** Tells a waiting sender. May be lost: the sender asks again under its id. */
  reply(read: ReadMessage, outcome: MessageOutcome): void {
    if (read.replyTo === undefined) return;
    const { codec, journal } = this.#services;
    journal.reply(read.replyTo, codec.encodeReply({ v: 1, id: read.envelope.id, outcome }));
  }

  /** Answers a message that changes nothing and is done with. */
  async refuse(message: InboxMessage, isReoffered: boolean, read: ReadMessage, outcome: MessageOutcome): Promise<true> {
    this.reply(read, outcome);
    this.#host.count("dropped");
    return this.finish(message, isReoffered);
  }

  /** A message that must not have an effect any more, whoever sent it again. */
  async drop(message: InboxMessage, isReoffered: boolean, { code, message: reason }: RuntimeFault): Promise<true> {
    this.#services.telemetry.warn("message.dropped", { key: this.#key, seq: message.seq, code, reason });
    this.#host.count("dropped");
    return this.finish(message, isReoffered);
  }

  /**
   * A message that nothing more is to be done about, here or after a takeover.
   * @param isOver  not when it only lies elsewhere now
   * @returns true: it was taken care of
   */
  async finish(message: InboxMessage, isReoffered: boolean, isOver = true): Promise<true> {
    // The sequence of one that was set aside counts in another stream: it says nothing to the cursor of the partition.
    if (!isReoffered) this.#host.considered(message);
    else {
      await this.#services.log.trim("parked", this.#key, message.seq + 1);
      if (isOver) await this.#services.quarantine.remove(this.#key, markOf(message));
    }
    return true;
  }

  /** Sets a message aside; one that had been so already moves to the end. @returns false when it could not be stored yet */
  async park(message: InboxMessage, isReoffered: boolean, why: string): Promise<boolean> {
    const { codec, log, telemetry } = this.#services;
    // Another id each time: a copy that the broker takes for the former one would go with it.
    const id = `parked:${message.messageId}${isReoffered ? `:${message.seq}` : ""}`;
    const read = this.read(message);
    const blobs = read instanceof RuntimeFault ? [] : blobsOfEnvelope(read.envelope);
    const outcome = await log.publish("parked", this.#key, encodeParked(codec, message), id, blobs);
    if (outcome.kind !== "accepted") return false;
    if (!outcome.duplicate) this.parked.setAside(outcome.seq);
    this.#host.parked(this.#key);
    this.#host.report(this.#key, { kind: "orphan-messages", why });
    if (!isReoffered) this.#host.count("parked");
    telemetry.warn("message.parked", { key: this.#key, seq: message.seq, why });
    return this.finish(message, isReoffered, false);
  }

  /** Tells a parent that there will be no child (F28). @returns false when that could not be sent yet */
  async startFailed({ key, genesis, childId }: ParentLink, fault: RuntimeFault): Promise<boolean> {
    const { codec, log } = this.#services;
    const id = `${this.#key}:settled`;
    const event = errorEvent(childId, fault);
    const settled = { v: 1, kind: "settled", id, toGenesis: genesis, childId, childKey: this.#key, event } as const;
    const outcome = await log.publish("inbox", key, codec.encodeEnvelope(settled), id);
    return outcome.kind === "accepted";
  }
}
