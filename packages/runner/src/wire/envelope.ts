import { ActorId } from "@holdfast/protocol";
import { z } from "zod";
import { EnvelopeSeq, RunnerEpoch, StoreSeq } from "./coordinates.ts";

/** Largest envelope as JSON, bytes: it has to fit into one message of the broker, with room for what goes around it. */
export const MAX_ENVELOPE_BYTES = 512 * 1024;

const bodies = {
  status: { op: z.literal("status"), state: z.enum(["idle", "busy"]) },
  event: {
    op: z.literal("event"),
    messageType: z.string().min(1).max(128),
    message: z.json(),
    /** Present on what the host must store before the runner may forget it. */
    requiresPersistence: z.literal(true).optional(),
  },
  result: { op: z.literal("result"), messageType: z.string().min(1).max(128), message: z.json(), storeSeq: StoreSeq },
  interaction: { op: z.literal("interaction"), interactionId: z.string().min(1).max(128), question: z.json() },
  inputAck: { op: z.literal("inputAck"), inputId: z.string().min(1).max(128), duplicate: z.boolean() },
  turnInterrupted: {
    op: z.literal("turnInterrupted"),
    commandId: z.string().min(1).max(128),
    continuesFifo: z.boolean(),
  },
  error: { op: z.literal("error"), code: z.string().min(1).max(64), message: z.string().max(4096) },
} as const;

/** An envelope before it has a place: what the engine's side of a runner hands over. */
export const EnvelopeDraft = z.discriminatedUnion("op", [
  z.strictObject(bodies.status),
  z.strictObject(bodies.event),
  z.strictObject(bodies.result),
  z.strictObject(bodies.interaction),
  z.strictObject(bodies.inputAck),
  z.strictObject(bodies.turnInterrupted),
  z.strictObject(bodies.error),
]);
export type EnvelopeDraft = z.infer<typeof EnvelopeDraft>;

const place = { seq: EnvelopeSeq, epoch: RunnerEpoch, conversation: ActorId };

/**
 * What a runner says about its conversation, in the one order of `seq`. A result carries two coordinates: `storeSeq` (what the transcript's
 * store had confirmed) and `liveSeq` (its own place among the envelopes); neither follows from the other.
 */
export const RunnerEnvelope = z.discriminatedUnion("op", [
  z.strictObject({ ...place, ...bodies.status }),
  z.strictObject({ ...place, ...bodies.event }),
  z
    .strictObject({ ...place, ...bodies.result, liveSeq: EnvelopeSeq })
    .refine(({ seq, liveSeq }) => seq === liveSeq, { path: ["liveSeq"], message: "the place of the result itself" }),
  z.strictObject({ ...place, ...bodies.interaction }),
  z.strictObject({ ...place, ...bodies.inputAck }),
  z.strictObject({ ...place, ...bodies.turnInterrupted }),
  z.strictObject({ ...place, ...bodies.error }),
]);
export type RunnerEnvelope = z.infer<typeof RunnerEnvelope>;

/** The draft in its place. Pure: the same draft in the same place is the same envelope. */
export function placeEnvelope(
  draft: EnvelopeDraft,
  at: { readonly seq: EnvelopeSeq; readonly epoch: RunnerEpoch; readonly conversation: ActorId },
): RunnerEnvelope {
  return draft.op === "result" ? { ...at, ...draft, liveSeq: at.seq } : { ...at, ...draft };
}

/** Whether a runner keeps it until the host has said that it is stored. */
export const isDurable = (envelope: RunnerEnvelope | EnvelopeDraft): boolean =>
  envelope.op === "event" && envelope.requiresPersistence === true;
