import { z } from "zod";
import { ActorKey } from "./ids.ts";

/** One failure of what was set aside. */
export const StuckAttempt = z.object({
  atMs: z.number(),
  /** Incarnation of the node on which it failed. */
  node: z.string(),
  code: z.string(),
  reason: z.string().max(1000),
});

export type StuckAttempt = z.infer<typeof StuckAttempt>;

/** Failures that an entry remembers, newest last. */
export const ATTEMPTS_REMEMBERED = 20;

/**
 * What was set aside for good, until an operator or another build comes; key `entry.<actor key>` of the stuck bucket, with `.<mark>` behind
 * it for a single message. JSON. It outlives the node that wrote it.
 */
export const StuckEntry = z.object({
  v: z.literal(1),
  key: ActorKey,
  /** `actor`: nothing of the actor runs, its messages wait. `message`: this one was taken out, the actor goes on. */
  subject: z.enum(["actor", "message"]),
  /** `parked`: it may be usable elsewhere, or an operator wants it to wait. `quarantined`: trying again does not help. */
  state: z.enum(["parked", "quarantined"]),
  code: z.string(),
  reason: z.string().max(1000),
  /** Failed attempts in all; `history` has the last of them. */
  attempts: z.number().int(),
  history: z.array(StuckAttempt).max(ATTEMPTS_REMEMBERED),
  firstMs: z.number(),
  lastMs: z.number(),
  /** Of a message: its id, what stands behind the actor's key in its own key, and how it came. */
  messageId: z.string().optional(),
  mark: z.string().optional(),
  lane: z.enum(["inbox", "control"]).optional(),
  principal: z.string().optional(),
  /** Where the bytes are: sequence of the record in its bucket, or of the message in its inbox; and how many. */
  seq: z.number().optional(),
  size: z.number().optional(),
  sha256: z.string().optional(),
  /** SHA-256 of the blobs that a message names, for who sweeps blobs. */
  blobs: z.array(z.string()).optional(),
  /** Principal that an operator spoke for who parked it by hand. */
  by: z.string().optional(),
});
export type StuckEntry = z.infer<typeof StuckEntry>;

export const OperatorVerb = z.enum(["retry", "skip", "park", "resume", "cancel"]);
export type OperatorVerb = z.infer<typeof OperatorVerb>;

/** What became of an operator's command. */
export const CommandOutcome = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done"), node: z.string(), what: z.string() }),
  z.object({ kind: z.literal("refused"), node: z.string(), code: z.string(), reason: z.string() }),
]);
export type CommandOutcome = z.infer<typeof CommandOutcome>;

/**
 * An operator's command to whichever node owns the actor; key `command.<actor key>` of the stuck bucket. JSON. It waits there until a node
 * has carried it out and written its outcome into it.
 */
export const OperatorCommand = z.object({
  v: z.literal(1),
  /** Random, fresh for every command. */
  token: z.string(),
  verb: OperatorVerb,
  key: ActorKey,
  messageId: z.string().max(400).optional(),
  /** Principal token of who asked, as they say; who may ask is decided by NATS permissions. */
  by: z.string().max(80),
  outcome: CommandOutcome.optional(),
});
export type OperatorCommand = z.infer<typeof OperatorCommand>;

/** One line of the audit stream. JSON. */
export const AuditEntry = z.object({
  v: z.literal(1),
  id: z.string(),
  verb: OperatorVerb,
  key: ActorKey,
  messageId: z.string().optional(),
  by: z.string(),
  /** Incarnation of the node that carried it out. */
  node: z.string(),
  atMs: z.number(),
});
export type AuditEntry = z.infer<typeof AuditEntry>;
