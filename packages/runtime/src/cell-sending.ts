import { journalEntryOf, resolveAction } from "@holdfast/durable";
import { toPlainFault, withBlobFields, type ActorRecord, type Effect, type EffectOf } from "@holdfast/protocol";
import { ActionSends } from "./action-sends.ts";
import { blobsOfJournal } from "./blobs/named-blobs.ts";
import type { NodeServices, ServedType } from "./cell-host.ts";
import { emitEvent } from "./emit-event.ts";
import { effectId, isMessage, toMessage } from "./effect-envelopes.ts";
import type { SendEffects } from "./outbox-dispatcher.ts";
import { machineOfRecord } from "./write-switch.ts";

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
      const { lane, key, bytes, messageId, blobs } = message;
      const outcome = await services.log.publish(lane, key, bytes, messageId, blobs);
      if (outcome.kind !== "refused" || outcome.retryable) return outcome;
      await undeliverable(first, outcome.reason);
      return { kind: "dropped" };
    }
    const whole = first.blobs === undefined ? first : await tryRestore(services, served, sender, first);
    return "id" in whole ? sendLocal(services, served, sender, whole, signal) : whole;
  };
}

function appendJournal(services: NodeServices, sender: ActorRecord, effects: readonly Effect[]) {
  const entries = effects
    .filter((effect) => effect.kind === "journal")
    .map((effect) => journalEntryOf(sender, effect, services.node));
  const [first, last] = [entries[0], entries.at(-1)];
  const id = `${sender.key}^${sender.genesis}@j${first?.rev ?? 0}-${last?.rev ?? 0}`;
  return services.journal.append(sender.key, services.codec.encodeJournalBatch(entries), id, blobsOfJournal(entries));
}

type LocalMessage = EffectOf<"emit"> | EffectOf<"action"> | EffectOf<"log">;

/** An effect with its payload back. What cannot be had any more is not carried out, and said; while nobody answers it is tried again. */
async function tryRestore(
  services: NodeServices,
  { compiled }: ServedType,
  sender: ActorRecord,
  effect: LocalMessage,
): Promise<LocalMessage | Awaited<ReturnType<SendEffects>>> {
  if (effect.kind === "log") return { kind: "dropped" };
  try {
    const values = await services.payloads.fetch(effect.blobs ?? {});
    if (effect.kind === "emit") return { ...effect, event: withBlobFields(effect.event, values) };
    const whole = withBlobFields(effect, values);
    const memory = compiled.actionMemory.get(effect);
    if (memory !== undefined) compiled.actionMemory.set(whole, memory);
    return whole;
  } catch (error) {
    const { code, message: reason } = toPlainFault(error, "HF-4008");
    if (code !== "HF-3007") return { kind: "unknown", reason };
    services.telemetry.error("outbox.no-payload", {
      key: sender.key,
      effect: effect.id,
      kind: effect.kind,
      code,
      reason,
    });
    return { kind: "dropped" };
  }
}

async function sendLocal(
  services: NodeServices,
  served: ServedType,
  sender: ActorRecord,
  effect: LocalMessage,
  signal: AbortSignal,
): ReturnType<SendEffects> {
  switch (effect.kind) {
    case "emit":
      return emitEvent(services, served, sender, effect);
    case "log":
      services.telemetry.debug("actor.log", { key: sender.key, label: effect.label });
      return { kind: "dropped" };
    case "action":
      await act(services, served, sender, effect, signal);
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
    await resolveAction(machineOfRecord(served, sender), sender, effect, sends.deliver)();
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
