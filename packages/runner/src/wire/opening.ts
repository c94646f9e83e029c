import { ActorId, Incarnation } from "@holdfast/protocol";
import { z } from "zod";
import { EngineRequirements } from "./contract.ts";
import { ReplayCursor } from "./coordinates.ts";

/** Name of a slot: a runner before it belongs to a conversation. */
export const SlotId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 characters of A-Z, a-z, 0-9, _ and -");
export type SlotId = z.infer<typeof SlotId>;

/** Where the transcript of the engine is kept. A runner passes it on and does not look inside. */
export const TranscriptStore = z.record(z.string().min(1).max(64), z.json());
export type TranscriptStore = z.infer<typeof TranscriptStore>;

/** Who speaks for the conversation now: the epoch of the lease under which the host owns it, and the host. */
export const Speaker = z.strictObject({ epoch: z.int().min(1), host: Incarnation });
export type Speaker = z.infer<typeof Speaker>;

const common = {
  protocol: z.string().min(1).max(64),
  token: z.string().min(1).max(512),
  requirements: EngineRequirements,
};

/**
 * The first frame of every connection; any other first frame ends it.
 *
 * `prepare` starts the engine in an empty slot, ahead of any conversation or for one (`claim`); `activate` binds the slot to a conversation,
 * once; `attach` makes its sender the one host; `observe` is an attach that refuses to displace anybody.
 */
export const Opening = z.discriminatedUnion("op", [
  z
    .strictObject({
      ...common,
      op: z.literal("prepare"),
      slotId: SlotId,
      options: z.record(z.string(), z.json()),
      /** Id of an engine session to go on with: needs `claim`, since the engine reads the transcript while it starts. */
      resume: z.string().min(1).max(256).optional(),
      claim: z.strictObject({ conversation: ActorId, store: TranscriptStore }).optional(),
    })
    .refine(({ resume, claim }) => resume === undefined || claim !== undefined, {
      path: ["claim"],
      message: "needed with resume: a conversation and its store",
    }),
  z.strictObject({
    ...common,
    op: z.literal("activate"),
    slotId: SlotId,
    conversation: ActorId,
    store: TranscriptStore.optional(),
  }),
  z.strictObject({
    ...common,
    op: z.literal("attach"),
    conversation: ActorId,
    cursor: ReplayCursor,
    speaker: Speaker,
  }),
  z.strictObject({
    ...common,
    op: z.literal("observe"),
    conversation: ActorId,
    cursor: ReplayCursor,
    speaker: Speaker,
  }),
]);
export type Opening = z.infer<typeof Opening>;
export type OpeningOf<Op extends Opening["op"]> = Extract<Opening, { op: Op }>;
