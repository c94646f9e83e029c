import { Principal } from "@holdfast/protocol";
import { z } from "zod";

/** What may be sent to a task from outside; the conversation that delegated it sends the same. */
export const TaskEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("cancel"),
    reason: z.string().max(500).optional(),
    principal: Principal.optional(),
  }),
]);
export type TaskEvent = Readonly<z.infer<typeof TaskEvent>>;

/** What the conversation of a task tells the task, besides its outcome. Never accepted from outside. */
interface ConversationStatusEvent {
  readonly type: "conversationStatus";
  readonly status: "running" | "waiting" | "held";
}

export type TaskMachineEvent = TaskEvent | ConversationStatusEvent;
