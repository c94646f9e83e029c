import { ActorId } from "@holdfast/protocol";
import { z } from "zod";
import { EngineContract } from "./contract.ts";
import { EnvelopeSeq, JournalToken, RunnerEpoch } from "./coordinates.ts";
import { RunnerEnvelope } from "./envelope.ts";

const Seq = z.int().min(0);
const Stamp = z.string().min(1).max(64);

/** Durable places without a receipt that a greeting names at most; the rest is named by the next one. */
export const MAX_NAMED_UNRECEIPTED = 1024;

/** What a runner sends. Everything but `envelope` has no place of its own and is not repeated. */
export const RunnerFrame = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("refused"), code: z.string(), reason: z.string(), detail: z.string() }),
  z.strictObject({ op: z.literal("prepared"), protocol: Stamp, contract: EngineContract }),
  z.strictObject({ op: z.literal("activated"), protocol: Stamp, contract: EngineContract, conversation: ActorId }),
  /** Before the first envelope of every connection that reads. */
  z.strictObject({
    op: z.literal("hello"),
    protocol: Stamp,
    contract: EngineContract,
    conversation: ActorId,
    journal: JournalToken,
    epoch: RunnerEpoch,
    /** Number of this attachment; every frame of the host carries it. */
    attachment: z.int().min(1),
    firstRetainedSeq: EnvelopeSeq.optional(),
    lastSeq: Seq,
    /** The oldest durable envelopes whose receipt has not come: a host that has stored them says so again. */
    unreceipted: z.array(EnvelopeSeq).max(MAX_NAMED_UNRECEIPTED),
  }),
  z.strictObject({ op: z.literal("gap"), afterSeq: Seq, firstRetainedSeq: Seq, lastSeq: Seq }),
  z.strictObject({ op: z.literal("envelope"), envelope: RunnerEnvelope }),
]);
export type RunnerFrame = z.infer<typeof RunnerFrame>;
export type RunnerFrameOf<Op extends RunnerFrame["op"]> = Extract<RunnerFrame, { op: Op }>;

/** What a host sends after its opening. */
export const HostFrame = z.discriminatedUnion("op", [
  /** The durable envelope at `seq` is stored: the runner may forget it. */
  z.strictObject({ op: z.literal("persisted"), attachment: z.int().min(1), seq: EnvelopeSeq }),
]);
export type HostFrame = z.infer<typeof HostFrame>;
