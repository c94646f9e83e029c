import type { Codec } from "@holdfast/codec";
import { fnv1a32Bytes, type ActorRecord, type Effect, type EffectOf, type Envelope } from "@holdfast/protocol";
import { blobsOfEnvelope } from "./blobs/named-blobs.ts";

type MessageEffect = EffectOf<"start"> | EffectOf<"send"> | EffectOf<"settled"> | EffectOf<"stop">;

export interface OutgoingMessage {
  readonly lane: "inbox" | "control";
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly messageId: string;
  readonly blobs: readonly string[];
}

/** Who sends: what of a record the receivers must know. */
export type Sender = Pick<ActorRecord, "key" | "genesis">;

/** Effects that become messages to other actors. */
export const isMessage = (effect: Effect): effect is MessageEffect =>
  effect.kind === "start" || effect.kind === "send" || effect.kind === "settled" || effect.kind === "stop";

/** Id of an effect in the whole namespace, for ever: a function of (actor, genesis, revision, index). */
export const effectId = (sender: Sender, effect: Effect): string => `${sender.key}^${sender.genesis}@${effect.id}`;

/**
 * Message that carries an effect. The broker's Msg-Id adds a hash of the bytes:
 * the same decision with other content must be seen as such, not dropped as a duplicate (I4).
 */
export function toMessage(codec: Codec, sender: Sender, effect: MessageEffect): OutgoingMessage {
  const id = effectId(sender, effect);
  const envelope = envelopeOf(sender, effect, id);
  const bytes = codec.encodeEnvelope(envelope);
  return {
    lane: effect.kind === "stop" ? "control" : "inbox",
    key: effect.to,
    bytes,
    messageId: `${id}-${fnv1a32Bytes(bytes).toString(16)}`,
    blobs: blobsOfEnvelope(envelope),
  };
}

function envelopeOf(sender: Sender, effect: MessageEffect, id: string): Envelope {
  switch (effect.kind) {
    case "start":
      return {
        v: 1,
        kind: "start",
        id,
        parent: { key: sender.key, genesis: sender.genesis, childId: effect.childId, sync: effect.sync },
        ...(effect.input !== undefined && { input: effect.input }),
        ...(effect.blobs !== undefined && { blobs: effect.blobs }),
        principal: effect.principal,
        ...(effect.atMs !== undefined && { atMs: effect.atMs }),
      };
    case "send":
      return {
        v: 1,
        kind: "send",
        id,
        from: { key: sender.key, genesis: sender.genesis, n: effect.n },
        ...(effect.toGenesis !== undefined && { toGenesis: effect.toGenesis }),
        event: effect.event,
        ...(effect.blobs !== undefined && { blobs: effect.blobs }),
      };
    case "settled":
      return {
        v: 1,
        kind: "settled",
        id: `${effect.childKey}:settled`,
        toGenesis: effect.toGenesis,
        childId: effect.childId,
        childKey: effect.childKey,
        event: effect.event,
        ...(effect.blobs !== undefined && { blobs: effect.blobs }),
      };
    case "stop":
      return { v: 1, kind: "stop", id, from: { key: sender.key, genesis: sender.genesis, childId: "", sync: false } };
  }
}
