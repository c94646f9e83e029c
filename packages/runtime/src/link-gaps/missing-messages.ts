import type { EventMessage } from "@holdfast/durable";
import { RESEND_EVENT, type ActorRecord, type ResendRequest } from "@holdfast/protocol";
import type { CellPlace } from "../cell-parts.ts";
import { tryParked } from "../parked-message.ts";
import type { InboxMessage } from "../ports/index.ts";

/** A message that came too early on its link. */
export interface EarlyMessage {
  readonly message: InboxMessage;
  readonly from: NonNullable<EventMessage["from"]>;
  /** Counter of the message that should have come. */
  readonly expected: number;
}

/**
 * What one actor does about gaps in its links: it waits for a while, then asks the sender for what is missing, less and less often.
 *
 * Owns: who was asked when. Does not own: the early messages, which wait in the parked stream.
 *   G1 nothing is asked for that came and was taken out: its link stands still until an operator says what becomes of it
 *   G2 a request may be lost, and may come twice: what is sent again has its counter, and is taken once
 */
export class MissingMessages {
  readonly #place: CellPlace;
  readonly #askedMs = new Map<string, number>();

  constructor(place: CellPlace) {
    this.#place = place;
  }

  /** @returns broker time at which the message is to be offered again */
  async ask(early: EarlyMessage, isReoffered: boolean, record: ActorRecord): Promise<number> {
    const { services, host } = this.#place;
    const { gapMs } = services.settings;
    const nowMs = services.time.nowMs();
    const waitedMs = nowMs - early.message.storedAtMs;
    // What is missing may lie unread, or be set aside behind this one.
    if (!isReoffered || !host.isCaughtUp || waitedMs < gapMs) return nowMs + gapMs;
    const link = `${early.from.key}^${early.from.genesis}`;
    if (nowMs - (this.#askedMs.get(link) ?? 0) >= gapMs && !(await this.#isSetAside(early))) {
      this.#askedMs.set(link, nowMs);
      await this.#send(early, record);
    }
    return nowMs + waitedMs;
  }

  async #send({ from, expected }: EarlyMessage, record: ActorRecord): Promise<void> {
    const { key, services } = this.#place;
    const { codec, log, random, telemetry } = services;
    const isFromParent = record.parent?.key === from.key && record.parent.genesis === from.genesis;
    const event: ResendRequest = {
      type: RESEND_EVENT,
      link: { key, genesis: record.genesis },
      first: expected,
      last: from.n - 1,
      sinceMs: isFromParent ? 0 : record.createdAtMs, // a parent may have written before its child was there
    };
    const id = `${key}^${record.genesis}@resend:${random.hex(8)}`;
    const bytes = codec.encodeEnvelope({ v: 1, kind: "send", id, toGenesis: from.genesis, event });
    const outcome = await log.publish("inbox", from.key, bytes, id);
    const { first, last } = event;
    telemetry.warn("link.gap", { key, from: from.key, first, last, asked: outcome.kind });
  }

  /** G1. */
  async #isSetAside({ message, from, expected }: EarlyMessage): Promise<boolean> {
    const { key, services } = this.#place;
    const { quarantine, codec } = services;
    for (const { mark, principal } of quarantine.messagesOf(key)) {
      if (mark === undefined || principal !== undefined) continue;
      const bytes = await quarantine.bytesOf(key, mark);
      const kept = bytes === undefined ? undefined : tryParked(codec, { ...message, bytes });
      if (kept !== undefined && isBetween(codec.decodeEnvelope(kept.bytes), from, expected)) return true;
    }
    return false;
  }
}

function isBetween(
  envelope: ReturnType<CellPlace["services"]["codec"]["decodeEnvelope"]>,
  { key, genesis, n }: EarlyMessage["from"],
  expected: number,
): boolean {
  if (envelope.kind !== "send" || envelope.from === undefined) return false;
  const { from } = envelope;
  return from.key === key && from.genesis === genesis && from.n >= expected && from.n < n;
}
