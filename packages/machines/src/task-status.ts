import type { TaskStatus } from "@holdfast/protocol";
import { topState } from "./conversation-status.ts";
import type { TaskContext } from "./task-context.ts";

/** Status of a task, from the value and the context of its snapshot. */
export function taskStatus(value: unknown, context: Pick<TaskContext, "conversationStatus">): TaskStatus {
  const top = topState(value);
  if (top === "completed" || top === "failed" || top === "cancelled" || top === "timedOut") return top;
  return context.conversationStatus;
}
