import { AgentDefinition, Budget, FailureCause } from "@holdfast/protocol";
import { z } from "zod";
import { failureOf } from "./failure.ts";
import { ConversationOutput } from "./conversation-output.ts";
import { TaskInput } from "./task-input.ts";
import type { TaskOutput } from "./task-output.ts";

/** How a task ended, without its id. */
export const TaskEnd = z.object({
  status: z.enum(["completed", "failed", "cancelled", "timedOut"]),
  result: z.string().optional(),
  cause: FailureCause.optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  partial: z.string().optional(),
  conversationId: z.string().optional(),
});
export type TaskEnd = Readonly<z.infer<typeof TaskEnd>>;

/** What a task keeps. */
export const TaskContext = z.object({
  taskId: z.string(),
  callId: z.string(),
  childId: z.string(),
  subagent: AgentDefinition,
  agents: z.record(z.string(), AgentDefinition),
  prompt: z.string(),
  description: z.string(),
  deadlineMs: z.number().optional(),
  depth: z.number(),
  maxDepth: z.number().optional(),
  idleMs: z.number().optional(),
  wantsPulse: z.boolean().optional(),
  isKept: z.boolean().optional(),
  canAsk: z.boolean().optional(),
  isHeld: z.boolean().optional(),
  root: z.string().optional(),
  budget: Budget.optional(),
  /** Follow-ups taken from the conversation that delegated it; absent: none. */
  runs: z.number().optional(),
  /** Call of its own conversation that asks, until it is answered. */
  asks: z.string().optional(),
  /** No follow-up will come: it ends for good with its run. */
  isReleased: z.boolean().optional(),
  /** What its conversation last said. */
  conversationStatus: z.enum(["running", "waiting", "held"]),
  /** How it ends unless its conversation answers after all; for a task that is being stopped. */
  stopping: TaskEnd.optional(),
  end: TaskEnd.optional(),
});
export type TaskContext = Readonly<z.infer<typeof TaskContext>>;

/**
 * Context of a task that nothing has happened in.
 *
 * @param taskId  id of the actor
 * @throws ZodError when the input does not fit; for the machine that is status `error`, its parent is told
 */
export function initialTask(input: unknown, taskId: string): TaskContext {
  return { ...TaskInput.parse(input), taskId, conversationStatus: "running" };
}

/** How a task ends when it is told to, or when its time is over. */
export function stoppedEnd(
  why: "cancelled" | "timedOut" | "idle",
  context: Pick<TaskContext, "deadlineMs" | "idleMs">,
  reason?: string,
): TaskEnd {
  if (why === "cancelled") {
    return {
      status: why,
      cause: "cancel",
      code: "HF-5203",
      message: `The task was cancelled: ${reason ?? "no reason"}.`,
    };
  }
  const message =
    why === "idle"
      ? `Nothing happened in the task for ${context.idleMs ?? 0} ms.`
      : `The task was not done within ${context.deadlineMs ?? 0} ms.`;
  return { status: "timedOut", cause: "timeout", code: "HF-5204", message };
}

/**
 * How a task ends by the output of its conversation. A finished answer counts even when the task was being stopped; any
 * other end is never an empty success: it has a cause and what there is of a result.
 */
export function endByOutput(context: TaskContext, output: unknown): TaskEnd {
  const parsed = ConversationOutput.safeParse(output);
  if (!parsed.success) {
    const message = "The conversation of the task reported nothing readable.";
    return context.stopping ?? { status: "failed", cause: "internal", code: "HF-5103", message };
  }
  const { conversationId } = parsed.data;
  if (parsed.data.outcome === "answered") return { status: "completed", result: parsed.data.text, conversationId };
  const partial = parsed.data.partial === undefined ? {} : { partial: parsed.data.partial };
  const base = { ...partial, conversationId };
  if (context.stopping !== undefined) return { ...context.stopping, ...base };
  if (parsed.data.outcome === "failed") return { status: "failed", ...parsed.data.failure, ...base };
  return { status: "cancelled", cause: "cancel", code: "HF-5203", message: "Its conversation was closed.", ...base };
}

/** How a task ends when its conversation broke. */
export function endByError(context: TaskContext, error: unknown): TaskEnd {
  return context.stopping ?? { status: "failed", ...failureOf(error, { cause: "internal", code: "HF-5103" }) };
}

/** Output of a task that ended. */
export function taskOutputOf(context: TaskContext): TaskOutput {
  const { taskId, end } = context;
  return end === undefined ? { taskId, status: "failed", cause: "internal" } : { taskId, ...end };
}
