import { AnnouncedEvent, toPlainFault, type ActorRecord, type EffectOf, type LifecycleEvent } from "@holdfast/protocol";
import type { NodeServices, ServedType } from "./cell-host.ts";
import { effectId } from "./effect-envelopes.ts";
import type { SendEffects } from "./outbox-dispatcher.ts";

type Emit = EffectOf<"emit">;

/**
 * Publishes what a machine emitted, if its definition makes it public. Every attribute is a function of the decision: sent again, it is the
 * same event. What can never be published is said and dropped; it must not hold up the events behind it.
 */
export async function emitEvent(
  services: NodeServices,
  served: ServedType,
  sender: ActorRecord,
  effect: Emit,
): ReturnType<SendEffects> {
  const announced = announcedBy(services, served, sender, effect);
  if (announced === undefined) return { kind: "dropped" };
  const { kind, name, type, data } = announced;
  const event: LifecycleEvent = {
    specversion: "1.0",
    id: effectId(sender, effect),
    source: `holdfast/${sender.type}/${sender.id}`,
    type,
    subject: sender.key,
    // Effects of older builds do not say when they were decided.
    time: new Date(effect.atMs ?? services.time.nowMs()).toISOString(),
    datacontenttype: "application/json",
    data,
  };
  const outcome = await services.journal.publishEvent(kind, name, event);
  if (outcome.kind !== "refused" || outcome.retryable) return outcome;
  services.telemetry.error("actor.event-refused", { key: sender.key, effect: event.id, reason: outcome.reason });
  return { kind: "dropped" };
}

/** User code: what it throws, or says wrongly, keeps the event private; it never harms the actor. */
function announcedBy(
  services: NodeServices,
  { definition }: ServedType,
  { key, type, id, parent }: ActorRecord,
  effect: Emit,
): AnnouncedEvent | undefined {
  try {
    const event = definition.publicEvent?.(effect.event, { key, type, id, parentKey: parent?.key });
    return event === undefined ? undefined : AnnouncedEvent.parse(event);
  } catch (error) {
    const { code, message } = toPlainFault(error, "HF-3101");
    services.telemetry.error("actor.event-failed", { key, effect: effect.id, code, reason: message });
    return undefined;
  }
}
