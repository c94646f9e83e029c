import type { FailureCause, WalletScope } from "@holdfast/protocol";

// What the machines announce about their own life. No content of prompts, answers or questions: services read it.

interface AboutConversation {
  readonly agent: string;
  readonly cause?: FailureCause;
}

/** Announced by a conversation. */
export type ConversationEmitted =
  | (AboutConversation & {
      readonly type:
        | "conversationCreated"
        | "conversationRunning"
        | "conversationWaiting"
        | "conversationIdle"
        | "conversationPaused"
        | "conversationStuck"
        | "conversationError"
        | "conversationClosed";
    })
  /** The outcome of a wait has reached the one who asked. */
  | { readonly type: "waitConsumed"; readonly waitId: string; readonly callId: string };

/** Announced by a task. */
export interface TaskEmitted {
  readonly type:
    | "taskCreated"
    | "taskQueued"
    | "taskStarted"
    | "taskWaiting"
    | "taskHeld"
    | "taskResumed"
    | "taskAsked"
    | "taskContinued"
    | "taskCompleted"
    | "taskFailed"
    | "taskCancelled"
    | "taskTimedOut"
    /** It takes no follow-ups any more. */
    | "taskClosed";
  readonly agent: string;
  readonly callId: string;
  readonly cause?: FailureCause;
  readonly conversationId?: string;
}

/** Announced by an owner-wait. */
export interface OwnerWaitEmitted {
  readonly type:
    | "waitOpened"
    | "waitAnswered"
    | "waitDeclined"
    | "waitExpired"
    | "waitCancelled"
    | "waitRevoked"
    | "waitReminded"
    | "waitReassigned"
    | "waitEscalated";
  readonly waitId: string;
  readonly conversationId: string;
  readonly agent: string;
  readonly callId: string;
  readonly assignee: string;
  readonly by?: "owner" | "default";
}

/** Announced by a wallet. */
export interface WalletEmitted {
  readonly type: "walletFenced" | "walletFenceLifted";
  readonly scope: WalletScope;
  readonly fenceId: string;
}
