import type { StepMessage } from "@holdfast/durable";
import { RuntimeFault, type ActorRecord, type ChildEntry, type Effect, type PlainEvent } from "@holdfast/protocol";
import type { MailboxItem } from "./mailbox.ts";

type SettledItem = Extract<MailboxItem, { kind: "settled" }>;

/** What a volatile host says: an outcome settles it, everything else is an event of it. */
export function hostItem(childKey: string, event: PlainEvent, record: ActorRecord | undefined): MailboxItem {
  const childId = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(event.type)?.[1];
  if (childId === undefined || record === undefined) return { kind: "host", childKey, event };
  return settledItem(record, childId, childKey, event);
}

/** Something a volatile host said, as the machine gets it. */
const hostEvent = (childKey: string, event: PlainEvent): StepMessage => ({
  kind: "event",
  id: `${childKey}:said`,
  event,
  fromHost: childKey,
  external: false,
});

/** What is applied for an item that is no message. */
export function localStepOf(item: Extract<MailboxItem, { kind: "timer" | "host" | "settled" }>): StepMessage {
  switch (item.kind) {
    case "timer":
      return { kind: "timer", timer: item.timer, gen: item.gen };
    case "host":
      return hostEvent(item.childKey, item.event);
    case "settled":
      return item.step;
  }
}

/** The error event of a child. */
export const errorEvent = (childId: string, fault: RuntimeFault): PlainEvent => ({
  type: `xstate.error.actor.${childId}`,
  error: fault.toJSON(),
  actorId: childId,
});

/** Ends a child with an error that this node found out itself. */
export const failedItem = (record: ActorRecord, childId: string, childKey: string, fault: RuntimeFault): SettledItem =>
  settledItem(record, childId, childKey, errorEvent(childId, fault));

/** A marked `unsafe` attempt whose runner is gone: nobody can know what it did (F21). */
export function ambiguousItem(record: ActorRecord, childId: string, entry: ChildEntry): SettledItem {
  const attempt = entry.attempt ?? 0;
  const fault = new RuntimeFault(
    "HF-3010",
    `Job ${childId} of ${record.key}: attempt ${attempt} had started when its node died, and it must not run twice. Ask whether it happened.`,
    { facts: { job: entry.key, attempt } },
  );
  return failedItem(record, childId, entry.key, fault);
}

/** F28: a start that no stream takes ends as an error of that child. @returns undefined for other effects */
export function undeliverableItem(
  record: ActorRecord | undefined,
  effect: Effect,
  reason: string,
): SettledItem | undefined {
  const child = effect.kind === "start" ? record?.snapshot.children[effect.childId] : undefined;
  if (effect.kind !== "start" || record === undefined || child === undefined) return undefined;
  const fault = new RuntimeFault(
    "HF-4004",
    `Start of ${effect.to}: the stream refused it (${reason}). Send less, or ask an operator.`,
  );
  return failedItem(record, effect.childId, child.key, fault);
}

function settledItem(record: ActorRecord, childId: string, childKey: string, event: PlainEvent): SettledItem {
  return {
    kind: "settled",
    step: { kind: "settled", id: `${childKey}:settled`, childId, childKey, event, toGenesis: record.genesis },
  };
}
