import { z } from "zod";
import { BlobFields } from "./blob-ref.ts";
import { ActorKey, Genesis } from "./ids.ts";
import { Incarnation } from "./incarnation.ts";
import { OnBehalf, Principal } from "./principal.ts";
import { ParentLink, PlainEvent } from "./record.ts";

/** Where the outcome of an outside message is sent as a core message. Only inbox subjects: a payload must not aim the node's rights. */
export const ReplyTo = z
  .string()
  .regex(/^_INBOX[A-Za-z0-9_]*(\.[A-Za-z0-9_-]+)+$/)
  .max(128);

const base = { v: z.literal(1), id: z.string().min(1).max(400) };
/** Fields of the input or the event that are kept outside. Means nothing in a message from outside. */
const blobs = BlobFields.optional();

/**
 * What travels on inbox and control subjects, as msgpack with tagged values.
 * `from` and `principal` of a message from outside come from its subject; what the payload says about them is ignored, as are its `blobs`.
 */
export const Envelope = z.discriminatedUnion("kind", [
  z.object({
    ...base,
    kind: z.literal("start"),
    parent: ParentLink.optional(),
    input: z.unknown().optional(),
    blobs,
    principal: Principal.optional(),
    /** Of a start from outside: for whom. */
    onBehalf: OnBehalf.optional(),
    /** When its parent decided it, broker time. */
    atMs: z.number().optional(),
    replyTo: ReplyTo.optional(),
  }),
  z.object({
    ...base,
    kind: z.literal("send"),
    from: z.object({ key: ActorKey, genesis: Genesis, n: z.number().int().min(1) }).optional(),
    /** Incarnation of the receiver this is meant for. */
    toGenesis: Genesis.optional(),
    event: PlainEvent,
    blobs,
    replyTo: ReplyTo.optional(),
  }),
  z.object({
    ...base,
    kind: z.literal("settled"),
    toGenesis: Genesis,
    childId: z.string(),
    childKey: z.string(),
    event: PlainEvent,
    blobs,
    /** Attempt whose outcome this is, and the process that ran it; jobs only. */
    attempt: z.number().optional(),
    runner: Incarnation.optional(),
  }),
  z.object({ ...base, kind: z.literal("stop"), from: ParentLink.optional() }),
]);
export type Envelope = z.infer<typeof Envelope>;
export type EnvelopeOf<K extends Envelope["kind"]> = Extract<Envelope, { kind: K }>;

/** Outcome of an outside message, sent after the commit. */
export const MessageOutcome = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("applied"),
    rev: z.number(),
    status: z.string(),
    value: z.unknown().optional(),
  }),
  z.object({
    kind: z.literal("ignored"),
    rev: z.number(),
    status: z.string(),
    value: z.unknown().optional(),
  }),
  z.object({
    kind: z.literal("refused"),
    code: z.string(),
    reason: z.string(),
    status: z.string().optional(),
    /** What a program needs to do something about it. */
    facts: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  }),
]);
export type MessageOutcome = z.infer<typeof MessageOutcome>;
export const MessageReply = z.object({ v: z.literal(1), id: z.string(), outcome: MessageOutcome });
export type MessageReply = z.infer<typeof MessageReply>;
