import type { ConversationStatus, WaitingOn } from "@holdfast/protocol";
import type { ConversationContext } from "./conversation-context.ts";
import { openCalls } from "./conversation-turn.ts";

/** What a conversation is doing, and on whom it waits when it does. */
export interface ConversationState {
  readonly status: ConversationStatus;
  readonly waitingOn?: WaitingOn;
}

const STATUS_OF: Readonly<Record<string, ConversationStatus>> = {
  starting: "idle",
  idle: "idle",
  paused: "paused",
  error: "error",
  failed: "error",
  stuck: "stuck",
  closing: "closed",
  awaiting: "closed",
  closed: "closed",
  finished: "closed",
};

/** Name of the outermost state of a state value. */
export function topState(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? (Object.keys(value)[0] ?? "") : "";
}

/**
 * Status of a conversation, from the value and the context of its snapshot.
 *
 * While anything works it is `running`; with nothing but tasks and questions open it is `waiting`: on the owner as soon as
 * one of them needs a person, else on the tasks.
 */
export function conversationStatus(value: unknown, context: Pick<ConversationContext, "calls">): ConversationState {
  const top = topState(value);
  if (top === "outOfBudget") return { status: "waiting", waitingOn: "budget" };
  if (top !== "turn") return { status: STATUS_OF[top] ?? "running" };
  const open = openCalls(context);
  if (open.length === 0 || open.some((call) => call.kind === "local" && call.doubt === undefined))
    return { status: "running" };
  const needsPerson = open.some((call) => call.isWaitingForPerson && call.kind !== "askParent");
  return { status: "waiting", waitingOn: needsPerson ? "owner" : "tasks" };
}
