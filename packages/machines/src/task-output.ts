import { FailureCause, TaskStatus } from "@holdfast/protocol";
import { z } from "zod";

/** How a task ended. `result` exists exactly when it is completed; every other end has `cause` and `message`. */
export const TaskOutput = z.object({
  taskId: z.string(),
  status: TaskStatus,
  /** The final answer of the sub-agent, bounded. */
  result: z.string().optional(),
  cause: FailureCause.optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  /** Last text of a sub-agent that did not come to an end, bounded. */
  partial: z.string().optional(),
  /** Absent when the conversation never reported. */
  conversationId: z.string().optional(),
});
export type TaskOutput = Readonly<z.infer<typeof TaskOutput>>;
