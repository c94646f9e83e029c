import { toPlainFault, type MessageOutcome } from "@holdfast/protocol";
import type { CellHost, NodeServices } from "./cell-host.ts";
import { readMessage, type ReadMessage } from "./message-reading.ts";
import type { InboxMessage } from "./ports/index.ts";

/**
 * Messages of one actor before and after they are applied: reading, answering, setting aside.
 * A message that cannot be applied now is copied to the parked stream, and only then counts as considered.
 */
export class CellMail {
  readonly #key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;

  constructor(key: string, services: NodeServices, host: CellHost) {
    this.#key = key;
    this.#services = services;
    this.#host = host;
  }

  /** @returns undefined when the bytes are not an envelope */
  read(message: InboxMessage): ReadMessage | undefined {
    try {
      return readMessage(this.#services.codec, message, this.#host.generation);
    } catch (error) {
      const { code } = toPlainFault(error, "HF-1001");
      this.#services.telemetry.error("message.unreadable", { key: this.#key, seq: message.seq, code });
      return undefined;
    }
  }

  /** Tells a waiting sender. May be lost: the sender asks again under its id. */
  reply(read: ReadMessage, outcome: MessageOutcome): void {
    if (read.replyTo === undefined) return;
    const { codec, journal } = this.#services;
    journal.reply(read.replyTo, codec.encodeReply({ v: 1, id: read.envelope.id, outcome }));
  }

  /** Answers a message that changes nothing and is done with. @returns true: it was taken care of */
  refuse(message: InboxMessage, read: ReadMessage, outcome: MessageOutcome): true {
    this.reply(read, outcome);
    this.#host.count("dropped");
    this.#host.considered(message);
    return true;
  }

  /** @returns false when it could not be stored yet */
  async park(message: InboxMessage, why: string): Promise<boolean> {
    const { log, telemetry } = this.#services;
    const outcome = await log.publish("parked", this.#key, message.bytes, `parked:${message.messageId}`);
    if (outcome.kind !== "accepted") return false;
    this.#host.parked(this.#key);
    this.#host.report(this.#key, { kind: "orphan-messages", why });
    this.#host.count("parked");
    telemetry.warn("message.parked", { key: this.#key, seq: message.seq, why });
    this.#host.considered(message);
    return true;
  }

  /** Takes every parked message back, oldest first. */
  async takeParked(): Promise<readonly InboxMessage[]> {
    const { log } = this.#services;
    const parked = await log.fetch("parked", this.#key, 0, 256);
    this.#host.unparked(this.#key);
    return parked;
  }

  /** Forgets parked messages that were applied. */
  async trimParked(throughSeq: number): Promise<void> {
    await this.#services.log.trim("parked", this.#key, throughSeq + 1);
  }
}
