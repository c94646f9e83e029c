import { replay, unsentEntries, type StepMessage } from "@holdfast/durable";
import {
  RESEND_EVENT,
  ResendRequest,
  RuntimeFault,
  withBlobFields,
  type ActorRecord,
  type EffectOf,
  type JournalEntry,
} from "@holdfast/protocol";
import type { CellParts } from "../cell-parts.ts";
import { toMessage } from "../effect-envelopes.ts";

/** Entries of a journal that are replayed for a request, at most: while that goes on its node does nothing else. */
const MAX_REPLAYED = 10_000;

/** @returns undefined when the message is no request; `unreadable` when it is one that this build does not understand */
export function resendRequestOf(step: StepMessage): ResendRequest | "unreadable" | undefined {
  if (step.kind !== "event" || step.event.type !== RESEND_EVENT) return undefined;
  if (step.external || step.from !== undefined) return undefined; // F35: refused like every reserved event
  return ResendRequest.safeParse(step.event).data ?? "unreadable";
}

/**
 * Sends messages again that a receiver has missed although its stream had acknowledged them. They are in no record any more; the journal
 * says what decided them, and each replayed step is compared with its entry (I3: nothing is decided anew). What still waits in the
 * outbox leaves by itself.
 * @returns false when it must be tried again
 */
export async function resendMissing(
  { key, services, stores, host }: CellParts,
  request: ResendRequest,
  genesis: string | undefined,
): Promise<boolean> {
  const { record } = stores.holder;
  if (record === undefined || record.genesis !== genesis) return true; // the one that was meant is gone
  const { telemetry, log, codec, random } = services;
  const { link, first, last } = request;
  const about = { key, to: link.key, first, last };
  const lines = await services.journal.read(key, host.signal);
  const stored = lines.flatMap(({ bytes }) => codec.decodeJournalBatch(bytes));
  const entries = [...stored, ...unsentEntries(record)].filter((entry) => entry.genesis === record.genesis);
  const found = entries.length > MAX_REPLAYED ? "its journal is too long" : await decided(entries);
  if (typeof found === "string") {
    telemetry.error("link.not-resent", { ...about, reason: found });
    return true;
  }
  const waiting = new Set(stores.dispatcher.unacked.map(({ id }) => id));
  for (const effect of found) {
    if (waiting.has(effect.id)) continue;
    const { lane, bytes, messageId, blobs } = toMessage(codec, record, effect);
    // Another id: the broker remembers the one whose message is missing.
    const outcome = await log.publish(lane, effect.to, bytes, `${messageId}:${random.hex(4)}`, blobs);
    if (outcome.kind !== "accepted") return false;
  }
  telemetry.warn("link.resent", { ...about, messages: found.length });
  return true;

  /** @returns what was sent to the receiver between the counters, or why nobody knows */
  async function decided(all: readonly JournalEntry[]): Promise<readonly EffectOf<"send">[] | string> {
    try {
      const events = await eventsOf(all);
      const payload = services.payloads.choose();
      const { steps, end } = replay(all, {
        machines: stores.served.versions,
        scheme: services.scheme,
        outside: payload.outside,
        eventOf: (entry) => events.get(entry) ?? entry.event,
      });
      const sent = steps.flatMap(({ entry, record: after }) => sentTo(request, entry, after));
      if (sent.length <= last - first && end.kind !== "complete") return `replay of entry ${end.rev}: ${end.kind}`;
      if (sent.length === 0) return "nothing like it was ever decided";
      await services.payloads.store(payload);
      return sent;
    } catch (error) {
      if (error instanceof RuntimeFault && error.code === "HF-3007") return error.message;
      throw error;
    }
  }

  async function eventsOf(all: readonly JournalEntry[]): Promise<Map<JournalEntry, JournalEntry["event"]>> {
    const events = new Map<JournalEntry, JournalEntry["event"]>();
    for (const entry of all) {
      if (entry.blobs === undefined) continue;
      events.set(entry, withBlobFields(entry.event, await services.payloads.fetch(entry.blobs)));
    }
    return events;
  }
}

function sentTo(
  { link, first, last, sinceMs }: ResendRequest,
  { atMs }: JournalEntry,
  { outbox }: ActorRecord,
): readonly EffectOf<"send">[] {
  return outbox.flatMap((effect) => {
    if (effect.kind !== "send" || effect.to !== link.key || effect.n < first || effect.n > last) return [];
    const isMeant = effect.toGenesis === undefined ? atMs >= sinceMs : effect.toGenesis === link.genesis;
    return isMeant ? [effect] : [];
  });
}
