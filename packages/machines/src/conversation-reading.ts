import type { ModelReply } from "@holdfast/protocol";
import { childOutcomeOf } from "./child-outcome.ts";
import { budgetFailure } from "./conversation-budget.ts";
import type { ConversationContext } from "./conversation-context.ts";
import type { ConversationMachineEvent } from "./conversation-event.ts";
import type { ParentTask } from "./conversation-input.ts";
import type { ConversationOutput } from "./conversation-output.ts";
import * as turn from "./conversation-turn.ts";
import type { Failure } from "./failure.ts";
import type { Caller } from "./task-plan.ts";
import { NOTHING_SPENT, overBudget } from "./turn-budget.ts";

/** What a guard or an action of the conversation machine looks at. */
export interface Moment {
  readonly context: ConversationContext;
  readonly event: ConversationMachineEvent;
}

const NO_BUDGET: Failure = { cause: "limit", code: "HF-5202", message: "The budget of this turn is spent." };

/** The failures that the machine itself declares. */
export const LIMITS = {
  turnTime: (context: ConversationContext): Failure => ({
    cause: "timeout",
    code: "HF-5204",
    message: `The turn took longer than ${context.agent.limits.maxTurnMs} ms.`,
  }),
  iterations: (context: ConversationContext): Failure => ({
    cause: "limit",
    code: "HF-5202",
    message: `No answer after ${context.agent.limits.maxIterations} model calls.`,
  }),
  budget: ({ spent = NOTHING_SPENT, agent }: ConversationContext): Failure => overBudget(spent, agent) ?? NO_BUDGET,
  wallet: budgetFailure,
  stuck: (context: ConversationContext): Failure => ({
    cause: "stuck",
    code: "HF-5202",
    message: `It went round in circles (${turn.stuckPattern(context) ?? "repeats"}), also after it was told so.`,
  }),
};

/** Who calls, for the plan of its calls. */
export const callerOf = ({ agent, agents, parentTask, tasks = [] }: ConversationContext): Caller => ({
  agent,
  agents,
  tasks,
  ...callerBelow(parentTask),
});

/** What the task a conversation works for means for its own calls. */
export const callerBelow = (task: ParentTask | undefined): Pick<Caller, "depth" | "maxDepth" | "canAsk"> => ({
  depth: task?.depth ?? 0,
  maxDepth: task?.maxDepth,
  canAsk: task?.canAsk === true,
});

/** The readable reply of the running model call; undefined for every other event. */
export function replyOf({ context, event }: Moment): ModelReply | undefined {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind !== "done" || outcome.childId !== turn.runningModelChild(context)) return undefined;
  return turn.tryModelReply(outcome.output);
}

/** Why the running model call gave no usable answer. */
export function modelFailureOf({ context, event }: Moment): Failure {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind === "failed") return turn.modelFailureOf(outcome.error);
  const reply = replyOf({ context, event });
  const unreadable = { message: "The model job returned something that is not a reply.", code: "HF-5004" };
  return (reply && turn.unanswerOf(context, reply)) ?? turn.modelFailureOf(unreadable);
}

/** The open call whose child ended. */
export function openCallOf({ context, event }: Moment) {
  const childId = childOutcomeOf(event)?.childId;
  return turn.openCalls(context).find((call) => (call.doubt?.question ?? call.childId) === childId);
}

/** The open call of this child id that waits for a task. */
export const openWaitOf = (context: ConversationContext, childId: string) =>
  turn.openCalls(context).find((call) => call.kind === "wait" && call.childId === childId);

/** The open question of this call id to whoever delegated the work. */
export const openQuestionOf = (context: ConversationContext, callId: string) =>
  turn.openCalls(context).find((call) => call.kind === "askParent" && call.callId === callId);

/** Output of a conversation that ended. */
export function outputOf(context: ConversationContext): ConversationOutput {
  const { conversationId, usage, outcome, lastText, lastFailure } = context;
  const base = { conversationId, usage };
  if (outcome === "answered") return { ...base, outcome, text: lastText };
  const partial = lastText === "" || context.isDeleted === true ? {} : { partial: lastText };
  if (outcome === "failed" && lastFailure !== undefined) return { ...base, outcome, failure: lastFailure, ...partial };
  return { ...base, outcome: "closed", ...partial };
}
