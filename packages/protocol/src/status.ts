import { z } from "zod";

/** What a conversation is doing. */
export const ConversationStatus = z.enum(["idle", "running", "waiting", "paused", "stuck", "held", "error", "closed"]);
export type ConversationStatus = z.infer<typeof ConversationStatus>;

/** What a task (work delegated to a sub-agent) is doing. */
export const TaskStatus = z.enum([
  "queued",
  "running",
  "waiting",
  "held",
  "completed",
  "failed",
  "cancelled",
  "timedOut",
  "lost",
  "rejected",
]);
export type TaskStatus = z.infer<typeof TaskStatus>;

export const TERMINAL_TASK_STATUSES = [
  "completed",
  "failed",
  "cancelled",
  "timedOut",
  "lost",
  "rejected",
] as const satisfies readonly TaskStatus[];

/** State of an owner-wait. `consumed` only once the resumed transition of the asker is stored. */
export const WaitStatus = z.enum(["open", "answered", "declined", "expired", "cancelled", "consumed"]);
export type WaitStatus = z.infer<typeof WaitStatus>;

/** Why something with status `waiting` waits. */
export const WaitingOn = z.enum(["owner", "tasks", "parent", "auth", "timer", "budget"]);
export type WaitingOn = z.infer<typeof WaitingOn>;

/** Machine-readable cause of every failure. */
export const FailureCause = z.enum([
  "nodeDeath",
  "timeout",
  "cancel",
  "limit",
  "stuck",
  "modelError",
  "toolError",
  "policy",
  "internal",
]);
export type FailureCause = z.infer<typeof FailureCause>;
