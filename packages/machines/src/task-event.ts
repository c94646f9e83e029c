import { ExternalId, Principal } from "@holdfast/protocol";
import { z } from "zod";
import { MAX_MESSAGE_CHARACTERS } from "./conversation-input.ts";

/** What may be sent to a task from outside; the conversation that delegated it sends the same. */
export const TaskEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("cancel"),
    reason: z.string().max(500).optional(),
    principal: Principal.optional(),
  }),
  /** A further message, or the answer to its question; only to a task that can be continued, or still runs. */
  z.object({
    type: z.literal("followUp"),
    messageId: ExternalId,
    text: z.string().min(1).max(MAX_MESSAGE_CHARACTERS),
    principal: Principal.optional(),
  }),
]);
export type TaskEvent = Readonly<z.infer<typeof TaskEvent>>;

/** What the conversation of a task tells the task, besides its outcome. Never accepted from outside. */
interface ConversationStatusEvent {
  readonly type: "conversationStatus";
  readonly status: "running" | "waiting" | "held";
}

/** What the conversation of a task that can be continued, or that may ask, tells it. */
type FromConversationEvent =
  | { readonly type: "conversationReported"; readonly output: unknown }
  | { readonly type: "conversationAsked"; readonly callId: string; readonly question: string }
  | { readonly type: "conversationActive" };

/** What the conversation that delegated it says. */
type FromParentEvent =
  /** The `runs`-th follow-up. */
  | { readonly type: "continueTask"; readonly runs: number; readonly prompt: string }
  /** It has its turn. */
  | { readonly type: "proceed" }
  /** No follow-up will come. */
  | { readonly type: "release" }
  /** As `release`, and it ends now. */
  | { readonly type: "cancel"; readonly reason?: string; readonly isFinal?: boolean };

export type TaskMachineEvent =
  | TaskEvent
  | FromParentEvent
  | ConversationStatusEvent
  | FromConversationEvent
  /** The node lets it run. */
  | { readonly type: "slotGranted" }
  | { readonly type: "deadlineOver" }
  | { readonly type: "idleOver" };
