import { resolveAction } from "@holdfast/durable";
import { toPlainFault, type ActorRecord, type Effect, type EffectOf, type LifecycleEvent } from "@holdfast/protocol";
import { ActionSends } from "./action-sends.ts";
import type { NodeServices, ServedType } from "./cell-host.ts";
import { effectId, isMessage, toJournalEntry, toMessage } from "./effect-envelopes.ts";
import type { SendEffects } from "./outbox-dispatcher.ts";

/** How the outbox of one actor leaves this node. `record` gives the record as last committed. */
export function createSender(
  services: NodeServices,
  served: ServedType,
  record: () => ActorRecord | undefined,
  signal: AbortSignal,
  undeliverable: (effect: Effect, reason: string) => Promise<void>,
): SendEffects {
  return async (effects) => {
    const sender = record();
    const first = effects[0];
    if (sender === undefined || first === undefined) return { kind: "dropped" };
    const reached = services.crashPoints.reach("mid-dispatch", sender.key);
    if (reached !== undefined) await reached;
    if (first.kind === "journal") return appendJournal(services, sender, effects);
    if (isMessage(first)) {
      const message = toMessage(services.codec, sender, first);
      const outcome = await services.log.publish(message.lane, message.key, message.bytes, message.messageId);
      if (outcome.kind !== "refused" || outcome.retryable) return outcome;
      await undeliverable(first, outcome.reason);
      return { kind: "dropped" };
    }
    return sendLocal(services, served, sender, first, signal);
  };
}

function appendJournal(services: NodeServices, sender: ActorRecord, effects: readonly Effect[]) {
  const entries = effects
    .filter((effect) => effect.kind === "journal")
    .map((effect) => toJournalEntry(sender, effect, services.node));
  const [first, last] = [entries[0], entries.at(-1)];
  const id = `${sender.key}^${sender.genesis}@j${first?.rev ?? 0}-${last?.rev ?? 0}`;
  return services.journal.append(sender.key, services.codec.encodeJournalBatch(entries), id);
}

async function sendLocal(
  services: NodeServices,
  served: ServedType,
  sender: ActorRecord,
  effect: EffectOf<"emit"> | EffectOf<"action"> | EffectOf<"log"> | EffectOf<"journal">,
  signal: AbortSignal,
): ReturnType<SendEffects> {
  switch (effect.kind) {
    case "emit":
      return emit(services, served, sender, effect);
    case "log":
      services.telemetry.debug("actor.log", { key: sender.key, label: effect.label });
      return { kind: "dropped" };
    case "action":
      await act(services, served, sender, effect, signal);
      return { kind: "dropped" };
    case "journal":
      return { kind: "dropped" };
  }
}

async function act(
  services: NodeServices,
  served: ServedType,
  sender: ActorRecord,
  effect: EffectOf<"action">,
  signal: AbortSignal,
): Promise<void> {
  const id = effectId(sender, effect);
  const sends = new ActionSends(services, id, signal);
  try {
    await resolveAction(served.compiled, sender, effect, sends.deliver)();
  } catch (error) {
    services.telemetry.error("actor.action-failed", {
      key: sender.key,
      action: effect.name,
      effect: id,
      fault: toPlainFault(error, "HF-5103").code,
    });
  }
  await sends.settled();
}

async function emit(
  services: NodeServices,
  served: ServedType,
  sender: ActorRecord,
  effect: EffectOf<"emit">,
): ReturnType<SendEffects> {
  const ids = { key: sender.key, type: sender.type, id: sender.id, parentKey: sender.parent?.key };
  const event = served.definition.publicEvent?.(effect.event, ids);
  if (event === undefined) return { kind: "dropped" };
  const cloudEvent: LifecycleEvent = {
    specversion: "1.0",
    id: effectId(sender, effect),
    source: `holdfast/${sender.type}/${sender.id}`,
    type: event.type,
    subject: sender.key,
    time: new Date(services.time.nowMs()).toISOString(),
    datacontenttype: "application/json",
    data: { ...event.data },
  };
  return services.journal.publishEvent(event.kind, event.name, cloudEvent);
}
