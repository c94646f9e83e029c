import type { TaskStatus } from "@holdfast/protocol";
import { topState } from "./conversation-status.ts";
import type { TaskContext } from "./task-context.ts";

/** Status of a task, from the value and the context of its snapshot. One that rests has the status its last run ended with. */
export function taskStatus(value: unknown, context: Pick<TaskContext, "conversationStatus" | "end">): TaskStatus {
  const top = topState(value);
  if (top === "completed" || top === "failed" || top === "cancelled" || top === "timedOut") return top;
  if (top === "queued" || top === "entering") return "queued";
  if (top === "closed" || isResting(value)) return context.end?.status ?? "failed";
  return context.conversationStatus;
}

/** Whether its run has ended and it may be continued. */
export const isResting = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "active" in value && value.active === "resting";
