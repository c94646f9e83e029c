import { costOf, type AgentDefinition, type ModelReply } from "@holdfast/protocol";
import { z } from "zod";
import type { Failure } from "./failure.ts";
import type { Refusal } from "./judge-answer.ts";

/** What a turn has spent since a person last said something. `costMicroUsd`: absent once anything had no price. */
export const Spent = z.object({ tokens: z.number(), costMicroUsd: z.number().optional() });
export type Spent = Readonly<z.infer<typeof Spent>>;

export const NOTHING_SPENT: Spent = { tokens: 0, costMicroUsd: 0 };

type Payer = Pick<AgentDefinition, "model" | "limits" | "prices">;

/** Spent so far and for one more reply; parts of a millionth count as one. */
export function spentWith(spent: Spent, { model, prices }: Payer, { usage }: Pick<ModelReply, "usage">): Spent {
  const tokens = spent.tokens + usage.inputTokens + usage.outputTokens;
  const price = priceOf(prices, model);
  if (price === undefined || spent.costMicroUsd === undefined) return { tokens };
  return { tokens, costMicroUsd: spent.costMicroUsd + costOf(price, usage).microUsd };
}

/** Why no further model call is made in this turn; undefined when the budget allows one. What has no price fits no limit. */
export function overBudget(spent: Spent, { limits }: Payer): Failure | undefined {
  const { maxTokens = Number.POSITIVE_INFINITY, maxCostMicroUsd } = limits;
  const over = (message: string): Failure => ({ cause: "limit", code: "HF-5202", message });
  if (spent.tokens >= maxTokens) return over(`No answer within ${maxTokens} tokens: ${spent.tokens} were spent.`);
  if (maxCostMicroUsd === undefined) return undefined;
  if (spent.costMicroUsd === undefined)
    return over("No answer within the budget: a model that was called has no price.");
  if (spent.costMicroUsd < maxCostMicroUsd) return undefined;
  return over(`No answer within ${maxCostMicroUsd} millionths of a US dollar: ${spent.costMicroUsd} were spent.`);
}

/** Whether an agent may go on with another model. The machine's guard asks it, and so does whoever tells the sender. */
export function judgeModel(
  agent: Payer,
  model: string,
): { readonly kind: "ok" } | { readonly kind: "duplicate" } | Refusal {
  if (model === agent.model) return { kind: "duplicate" };
  if (agent.limits.maxCostMicroUsd === undefined || priceOf(agent.prices, model) !== undefined) return { kind: "ok" };
  const reason = `The agent has a budget in money, and model ${model} no price. Name a model that has one.`;
  return { kind: "refused", code: "HF-5202", why: "mismatch", reason };
}

const priceOf = (prices: Payer["prices"], model: string) =>
  prices !== undefined && Object.hasOwn(prices, model) ? prices[model] : undefined;
