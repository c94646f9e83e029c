import { ActorKey, AgentDefinition, ExternalId, Principal } from "@holdfast/protocol";
import { z } from "zod";
import type { WaitSettledEvent } from "./owner-wait-event.ts";
import { MAX_MESSAGE_CHARACTERS, Tags, Title } from "./conversation-input.ts";

// Set by the shell from the subject of the message; what a sender writes there is overwritten or dropped.
const principal = Principal.optional();

/** What may be sent to a conversation from outside. */
export const ConversationEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("userMessage"),
    messageId: ExternalId,
    text: z.string().min(1).max(MAX_MESSAGE_CHARACTERS),
    /** false: at rest it is kept for the next turn and opens none. */
    run: z.boolean().optional(),
    principal,
  }),
  /** Lets messages that wait be answered; from `paused`, `error` and `stuck` the same as `resume`. */
  z.object({ type: z.literal("run"), principal }),
  /** Stops before the next step: a model call with its tool calls. */
  z.object({ type: z.literal("pause"), principal }),
  z.object({ type: z.literal("resume"), principal }),
  /** Stops the running step now; every open call gets the result "interrupted". */
  z.object({ type: z.literal("interrupt"), principal }),
  z.object({ type: z.literal("close"), principal }),
  /** Ends it, and what it holds goes soon. `children`: what becomes of its open tasks and questions. */
  z.object({ type: z.literal("delete"), children: z.enum(["cancel", "await"]).optional(), principal }),
  /** Replaces what is given; all tags at once. */
  z.object({ type: z.literal("describe"), title: Title.optional(), tags: Tags.optional(), principal }),
  /** From the next model call on. */
  z.object({ type: z.literal("switchModel"), model: AgentDefinition.shape.model, principal }),
  /** Replaces what the model is shown of the past by a summary, between two steps. */
  z.object({ type: z.literal("condense"), principal }),
  /** A fork of this conversation is about to be started. */
  z.object({ type: z.literal("forked"), fork: ActorKey, principal }),
  /** Ends one open call, usually a task; the model is told. */
  z.object({
    type: z.literal("cancelTask"),
    callId: z.string().min(1).max(128),
    reason: z.string().max(500).optional(),
    principal,
  }),
]);
export type ConversationEvent = Readonly<z.infer<typeof ConversationEvent>>;

/** What a task tells the conversation that delegated it, besides its outcome. Never accepted from outside. */
interface TaskStatusEvent {
  readonly type: "taskStatus";
  readonly childId: string;
  readonly status: "running" | "waiting" | "held";
}

/** What a task that can be continued tells the conversation that delegated it. Never accepted from outside. */
type TaskReportEvent =
  /** A run has ended; `output` is a `TaskOutput`, `runs` the number of follow-ups it knew. */
  | { readonly type: "taskReported"; readonly childId: string; readonly runs: number; readonly output: unknown }
  | { readonly type: "taskAsked"; readonly childId: string; readonly runs: number; readonly question: string }
  /** Something has happened in it or below. */
  | { readonly type: "taskActive"; readonly childId: string };

/** What a conversation is told by the task it works for. Never accepted from outside. */
export type FromTaskEvent =
  | { readonly type: "parentAnswered"; readonly callId: string; readonly text: string }
  /** The run is to end; it may be continued. */
  | { readonly type: "stopRun" };

/** Everything a conversation handles. */
export type ConversationMachineEvent =
  | ConversationEvent
  | TaskStatusEvent
  | TaskReportEvent
  | WaitSettledEvent
  | FromTaskEvent
  /** A call has waited for a task as long as it wanted. */
  | { readonly type: "taskWaitOver"; readonly childId: string }
  | { readonly type: `xstate.done.actor.${string}`; readonly output: unknown }
  | { readonly type: `xstate.error.actor.${string}`; readonly error: unknown };
