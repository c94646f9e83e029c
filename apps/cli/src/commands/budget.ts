import type { LimitChange } from "@holdfast/client";
import { balanceOf, foldWalletLedger, type WalletLedger } from "@holdfast/machines";
import type { Sum, WalletState } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { dollars, moneyOption, tokensOption } from "./money-option.ts";

interface SetOptions extends GlobalOptions {
  readonly usd?: number | null;
  readonly tokens?: number | null;
  readonly reason?: string;
}
interface CloseOptions extends GlobalOptions {
  readonly usd: number | null;
  readonly tokens: number | null;
}

const most = (limit: number | undefined, show: (value: number) => string): string =>
  limit === undefined ? "no limit" : show(limit);
const sum = ({ microUsd, tokens }: Sum): string => `${dollars(microUsd)}, ${tokens} tokens`;

/** What the ledger adds up to is what the wallet says. */
function agrees(ledger: WalletLedger, state: WalletState): boolean {
  const { settled, held, unresolved } = balanceOf(state);
  const isSame = (a: Sum, b: Sum) => a.microUsd === b.microUsd && a.tokens === b.tokens;
  const holds = { microUsd: held.microUsd + unresolved.microUsd, tokens: held.tokens + unresolved.tokens };
  return isSame(ledger.settled, settled) && isSame(ledger.held, holds);
}

function walletText(id: string, state: WalletState, ledger: WalletLedger): string {
  const { limit, settled, unresolved, olderUnresolved: older, fence } = state;
  const balance = balanceOf(state);
  return [
    `${id} (${state.scope})${fence === undefined ? "" : `, fenced: ${fence.fenceId}`}`,
    `limit       ${most(limit.microUsd, dollars)}, ${most(limit.tokens, String)}${limit.tokens === undefined ? "" : " tokens"}`,
    `spent       ${sum(balance.settled)} in ${settled.calls} calls, ${settled.unpricedCalls} of them without a price`,
    `held        ${sum(balance.held)} for calls that run`,
    `unresolved  ${sum(balance.unresolved)} for calls of which nobody knows what they cost`,
    `lent        ${sum(balance.lent)}`,
    `ledger      ${ledger.lines.length} reservations, ${agrees(ledger, state) ? "agrees" : "DIFFERS"}`,
    ...Object.keys(unresolved).map((reservation) => `  unresolved: ${reservation}`),
    ...(older.calls === 0 ? [] : [`  unresolved: older (${older.calls} together, ${sum(older)})`]),
  ].join("\n");
}

/** `holdfast budget …` */
export function budgetCommands(program: Command, context: CommandContext): void {
  const budget = program.command("budget").description("what may be spent on model calls, and what was");
  budget
    .command("list")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const headers = await holdfast.read.headers("wallet");
        const wallets = headers.map(({ key, list }) => ({ id: key.split(".")[2] ?? key, ...list }));
        const word = (value: unknown): string => (typeof value === "string" ? value : "");
        const money = (value: unknown): string => (typeof value === "number" ? dollars(value) : "");
        output.result(
          { wallets },
          table([
            ["wallet", "scope", "status", "limit", "spent", "held", "unresolved", "lent"],
            ...wallets.map((fields: Readonly<Record<string, unknown>>) => [
              word(fields["id"]),
              word(fields["scope"]),
              word(fields["status"]),
              money(fields["limitMicroUsd"]),
              money(fields["spentMicroUsd"]),
              money(fields["heldMicroUsd"]),
              money(fields["unresolvedMicroUsd"]),
              money(fields["lentMicroUsd"]),
            ]),
          ]),
        );
      }),
    );
  budget
    .command("show")
    .argument("<id>")
    .option("--json")
    .action((id: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { key, rev, state } = await holdfast.wallets.get(id);
        const entries = await holdfast.read.journalThrough(key, rev);
        const ledger = foldWalletLedger(entries.filter((entry) => entry.rev <= rev).map(({ event }) => event));
        output.result(
          { id, key, rev, ...state, balance: balanceOf(state), ledger: { ...ledger, agrees: agrees(ledger, state) } },
          walletText(id, state, ledger),
        );
        if (!agrees(ledger, state)) process.exitCode = 1;
      }),
    );
  budget
    .command("set")
    .description("set what a wallet may spend, or make it; wakes nobody")
    .argument("<id>", 'a name of yours, or "global" for everything')
    .option("--usd <amount>", 'US dollars, or "none"', moneyOption)
    .option("--tokens <n>", 'tokens, or "none"', tokensOption)
    .option("--reason <text>")
    .option("--json")
    .action((id: string, { usd, tokens, reason, ...options }: SetOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const change: LimitChange = {
          ...(usd !== undefined && { microUsd: usd }),
          ...(tokens !== undefined && { tokens }),
          ...(reason !== undefined && { reason }),
        };
        const result = await holdfast.wallets.set(id, change);
        output.result({ id, key: holdfast.wallets.key(id), result }, `${id}: ${resultText(result)}`);
      }),
    );
  budget
    .command("resume")
    .description("lift the fence of a wallet that was spent; what rests is let go on one by one")
    .argument("<id>")
    .option("--json")
    .action((id: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const result = await holdfast.wallets.liftFence(id);
        output.result({ id, result }, `${id}: ${resultText(result)}`);
      }),
    );
  budget
    .command("close")
    .description("end the hold of a call of which nobody knows what it cost")
    .argument("<id>")
    .argument("<reservation>", 'as "budget show" lists it; "older": all that it no longer tells apart')
    .requiredOption("--usd <amount>", 'what it was charged, or "none" when it has no price', moneyOption)
    .option("--tokens <n>", "tokens it was charged", tokensOption, 0)
    .option("--json")
    .action((id: string, reservation: string, { usd, tokens, ...options }: CloseOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const charged = { ...(usd !== null && { microUsd: usd }), tokens: tokens ?? 0 };
        const result = await holdfast.wallets.closeHold(id, reservation, charged);
        output.result({ id, reservation, result }, resultText(result));
      }),
    );
}
