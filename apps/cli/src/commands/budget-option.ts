import { Budget } from "@holdfast/protocol";
import { Option, type Command } from "commander";
import type { z } from "zod";
import { moneyOption, tokensOption } from "./money-option.ts";

/** Who pays for a conversation, as the command line says it. */
export interface BudgetOptions {
  readonly budget?: string;
  readonly whenSpent?: Budget["whenSpent"];
  readonly cheaperModel?: string;
  readonly taskUsd?: number | null;
  readonly taskTokens?: number | null;
}

/** The options of a command that starts a conversation. */
export const withBudgetOptions = (command: Command): Command =>
  command
    .option("--budget <wallet>", "who pays for it and for all below it")
    .addOption(
      new Option("--when-spent <what>", "what becomes of it then").choices(Budget.shape.whenSpent.unwrap().options),
    )
    .option("--cheaper-model <name>", "what a person may let it go on with instead of raising the limit")
    .option("--task-usd <amount>", "US dollars for each task below it", moneyOption)
    .option("--task-tokens <n>", "tokens for each task below it", tokensOption);

/** @returns undefined when nobody is named to pay */
export function budgetOf(options: BudgetOptions): z.input<typeof Budget> | undefined {
  const { budget: wallet, whenSpent, cheaperModel, taskUsd, taskTokens } = options;
  if (wallet === undefined) return undefined;
  const microUsd = taskUsd ?? undefined;
  const tokens = taskTokens ?? undefined;
  const isPerTask = microUsd !== undefined || tokens !== undefined;
  return {
    wallet,
    ...(whenSpent !== undefined && { whenSpent }),
    ...(cheaperModel !== undefined && { cheaperModel }),
    ...(isPerTask && {
      perTask: { ...(microUsd !== undefined && { microUsd }), ...(tokens !== undefined && { tokens }) },
    }),
  };
}
