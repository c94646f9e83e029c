import { FailureCause, hash128, WalletScope, type Payer } from "@holdfast/protocol";
import { z } from "zod";
import type { BudgetRefusal } from "./budget-refusal.ts";
import { childOutcomeOf } from "./child-outcome.ts";
import type { ConversationContext } from "./conversation-context.ts";
import type { ConversationMachineEvent } from "./conversation-event.ts";
import type { Failure } from "./failure.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import { OwnerWaitOutput } from "./owner-wait-output.ts";
import * as turn from "./conversation-turn.ts";

// What a conversation makes of a wallet that gives it nothing more. Pure; conversation-budget.machine.ts says when.

interface Moment {
  readonly context: ConversationContext;
  readonly event: ConversationMachineEvent;
}

/** Nobody can say whether it may be spent: then nothing runs, and nothing ends. */
const CANNOT_BE_ASKED = "HF-5308";
const RefusalError = z.looseObject({
  code: z.enum(["HF-5301", "HF-5304", CANNOT_BE_ASKED]),
  message: z.string(),
  facts: z.looseObject({ scope: WalletScope, wallet: z.string(), fence: z.string().optional() }),
});

/** Who pays for a model call; undefined when nobody limits it. */
export function payerOf({ budget, parentTask, pass }: ConversationContext): Payer | undefined {
  if (budget === undefined) return undefined;
  const { wallet, perTask } = budget;
  const own = perTask !== undefined && parentTask !== undefined;
  return {
    wallet,
    ...(own && { own: { id: `task-${hash128(parentTask.taskId)}`, limit: perTask } }),
    ...(pass !== undefined && { pass }),
  };
}

/** The refusal that the running model call ended with; undefined for every other event. */
export function refusalOf({ context, event }: Moment): BudgetRefusal | undefined {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind !== "failed" || outcome.childId !== turn.runningModelChild(context)) return undefined;
  const { data } = RefusalError.safeParse(outcome.error);
  if (data === undefined) return undefined;
  const { scope, wallet, fence } = data.facts;
  return { scope, wallet, code: data.code, message: data.message, ...(fence !== undefined && { fence }) };
}

/**
 * It rests until somebody lets it go on. What has begun and finds everything spent ends instead: nobody could pay for its end.
 * Where nobody can say whether it is spent, nothing ends.
 */
export function isToRest(moment: Moment): boolean {
  const { context } = moment;
  const refusal = refusalOf(moment);
  if (refusal?.code === CANNOT_BE_ASKED) return true;
  if (refusal === undefined || context.budget?.whenSpent === "stop") return false;
  const { inputTokens, outputTokens } = context.usage;
  return refusal.scope !== "global" || context.budget?.whenSpent === "ask" || inputTokens + outputTokens === 0;
}

export const budgetFailure = ({ refusal }: Pick<ConversationContext, "refusal">): Failure => ({
  cause: FailureCause.enum.limit,
  code: refusal?.code ?? "HF-5301",
  message: `budget_exhausted, scope ${refusal?.scope ?? "root"}: ${refusal?.message ?? "The budget is spent."}`,
});

/** A refused call was none: it does not count against the limits of the turn. */
export const withRefusal = (moment: Moment): Partial<ConversationContext> => {
  const refusal = refusalOf(moment);
  return refusal === undefined ? {} : { refusal, iteration: Math.max(0, moment.context.iteration - 1) };
};

/** A person is asked about what is spent; that a wallet cannot be asked is nothing that an answer changes. */
export const isToAsk = ({ budget, refusal }: ConversationContext): boolean =>
  budget?.whenSpent === "ask" && refusal?.code !== CANNOT_BE_ASKED;

export const RAISED = "The limit is raised, go on";
export const CHEAPER = "Go on with the cheaper model";
export const STOP = "Stop";

/** The question that a person is asked; one for each refusal. */
export const questionId = ({ usage }: Pick<ConversationContext, "usage">): string => `budget-${usage.modelCalls}`;

export function questionOf({ refusal, budget, agent, conversationId, usage }: ConversationContext): OwnerWaitInput {
  const { cheaperModel } = budget ?? {};
  return {
    question: `The budget of ${conversationId} is spent. How is it to go on?`,
    reason: refusal?.message ?? "",
    options: [RAISED, ...(cheaperModel === undefined || cheaperModel === agent.model ? [] : [CHEAPER]), STOP],
    conversationId,
    agent: agent.name,
    callId: questionId({ usage }),
    assignee: "owner",
    onExpiry: "fail",
  };
}

/** What a person answered to the question about the budget; undefined for every other event, and without an answer. */
export function budgetAnswerOf({ context, event }: Moment): string | undefined {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind !== "done" || outcome.childId !== questionId(context)) return undefined;
  const answer = OwnerWaitOutput.safeParse(outcome.output).data?.answer;
  return typeof answer === "string" ? answer : undefined;
}

/** A person lets it go on: past the fence that stood in its way, and past no other. */
export function withLeave(moment: Moment): Partial<ConversationContext> {
  const { refusal, agent, budget } = moment.context;
  const isCheaper = budgetAnswerOf(moment) === CHEAPER && budget?.cheaperModel !== undefined;
  return {
    refusal: undefined,
    ...(refusal?.fence !== undefined && { pass: refusal.fence }),
    ...(isCheaper && { agent: { ...agent, model: budget.cheaperModel ?? agent.model } }),
  };
}
