import type { ConversationStatus, FailureCause, TaskStatus, WaitingOn } from "./status.ts";

/** What work is doing, in the words that every protocol can be told from. */
export type WorkState =
  | "submitted"
  | "working"
  | "waiting.owner"
  | "waiting.auth"
  | "waiting.tasks"
  | "completed"
  | "failed"
  | "cancelled"
  | "rejected";

/** How other protocols name a state. A missing name: the protocol has none for it. */
export interface ProtocolNames {
  /** A2A 1.0, `TaskState`. */
  readonly a2a: string;
  /** MCP, extension tasks, `status`. `failed` is kept there for errors of the protocol: failed work is completed with `isError`. */
  readonly mcp?: string;
  /** AG-UI 1.0: event, and of a finished run its outcome. */
  readonly agUi?: string;
  /** OpenAI Responses, `status`. */
  readonly responses?: string;
}

/** The one table that edges translate by. */
export const PROTOCOL_NAMES: Readonly<Record<WorkState, ProtocolNames>> = {
  submitted: { a2a: "TASK_STATE_SUBMITTED", mcp: "working", responses: "queued" },
  working: { a2a: "TASK_STATE_WORKING", mcp: "working", agUi: "RUN_STARTED", responses: "in_progress" },
  "waiting.owner": { a2a: "TASK_STATE_INPUT_REQUIRED", mcp: "input_required", agUi: "RUN_FINISHED interrupt" },
  "waiting.auth": { a2a: "TASK_STATE_AUTH_REQUIRED", mcp: "input_required", agUi: "RUN_FINISHED interrupt" },
  "waiting.tasks": { a2a: "TASK_STATE_WORKING", mcp: "working", agUi: "RUN_STARTED", responses: "in_progress" },
  completed: { a2a: "TASK_STATE_COMPLETED", mcp: "completed", agUi: "RUN_FINISHED success", responses: "completed" },
  failed: { a2a: "TASK_STATE_FAILED", mcp: "completed isError", agUi: "RUN_ERROR", responses: "failed" },
  cancelled: { a2a: "TASK_STATE_CANCELED", mcp: "cancelled", agUi: "RUN_FINISHED cancelled", responses: "cancelled" },
  rejected: { a2a: "TASK_STATE_REJECTED", agUi: "RUN_ERROR", responses: "failed" },
};

const WAITING: Readonly<Record<WaitingOn, WorkState>> = {
  owner: "waiting.owner",
  // Whoever gave the work has to say something.
  parent: "waiting.owner",
  budget: "waiting.owner",
  auth: "waiting.auth",
  tasks: "waiting.tasks",
  timer: "working",
};

/** State of the last turn of a conversation. One that a person holds goes on only when a person says so. */
export function workStateOfConversation(
  status: ConversationStatus,
  { waitingOn = "owner", cause }: { readonly waitingOn?: WaitingOn; readonly cause?: FailureCause } = {},
): WorkState {
  switch (status) {
    case "running":
      return "working";
    case "waiting":
      return WAITING[waitingOn];
    case "paused":
    case "held":
      return "waiting.owner";
    case "idle":
    case "closed":
      return "completed";
    case "stuck":
      return "failed";
    case "error":
      return cause === "cancel" ? "cancelled" : cause === "policy" ? "rejected" : "failed";
  }
}

/** State of a task. */
export function workStateOfTask(status: TaskStatus, { waitingOn = "owner" }: { readonly waitingOn?: WaitingOn } = {}) {
  return status === "waiting" ? WAITING[waitingOn] : OF_TASK[status];
}

const OF_TASK: Readonly<Record<Exclude<TaskStatus, "waiting">, WorkState>> = {
  queued: "submitted",
  running: "working",
  held: "waiting.owner",
  completed: "completed",
  failed: "failed",
  timedOut: "failed",
  lost: "failed",
  cancelled: "cancelled",
  rejected: "rejected",
};
