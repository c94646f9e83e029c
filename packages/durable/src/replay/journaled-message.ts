import type { ActorRecord, JournalEntry } from "@holdfast/protocol";
import type { StepMessage } from "../step-types.ts";

export type JournaledMessage =
  | { readonly kind: "message"; readonly message: StepMessage }
  /** What the entry says is not enough. */
  | { readonly kind: "unknown"; readonly why: string };

const known = (message: StepMessage): JournaledMessage => ({ kind: "message", message });

/**
 * The message that a journal entry applied, made again from the entry and the record before it.
 * @param record  undefined before the first entry
 */
export function journaledMessage(entry: JournalEntry, record: ActorRecord | undefined): JournaledMessage {
  const { key, genesis, event, principal } = entry;
  const { kind, id } = entry.cause;
  switch (kind) {
    case "start":
      if (principal === undefined) return { kind: "unknown", why: "a start without its principal" };
      return known({
        kind: "start",
        id,
        key,
        genesis,
        principal,
        generation: genesis.slice(0, genesis.indexOf(":")),
        ...(entry.parent === undefined ? {} : { parent: entry.parent }),
        ...("input" in event ? { input: event["input"] } : {}),
      });
    case "event":
      return eventMessage(entry);
    case "settled": {
      const childId = /^xstate\.(?:done|error)\.actor\.(.+)$/s.exec(event.type)?.[1];
      if (childId === undefined) return { kind: "unknown", why: `an outcome of type ${event.type}` };
      const childKey = record?.snapshot.children[childId]?.key ?? "";
      return known({
        kind: "settled",
        id,
        childId,
        childKey,
        event,
        toGenesis: genesis,
        ...(entry.ran && { ran: entry.ran }),
      });
    }
    case "timer": {
      const end = id.lastIndexOf("/");
      return known({ kind: "timer", timer: id.slice(0, end), gen: id.slice(end + 1) });
    }
    case "stop":
      return known({ kind: "stop", id });
    case "reconcile":
      return { kind: "unknown", why: "no message: another version of the machine took over" };
  }
}

function eventMessage({ cause, event, principal, sender, host, writer }: JournalEntry): JournaledMessage {
  const message = { kind: "event", id: cause.id, event, ...(principal === undefined ? {} : { principal }) } as const;
  if (sender !== undefined) return known({ ...message, from: sender, external: false });
  if (host !== undefined) return known({ ...message, fromHost: host, external: false });
  // Counted by its id: from outside, or sent by hand in a custom action.
  if (principal !== undefined || writer !== undefined) return known({ ...message, external: true });
  return { kind: "unknown", why: "an event without its sender: an older build wrote the entry" };
}
