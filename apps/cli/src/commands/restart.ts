import { randomBytes } from "node:crypto";
import type { RestartPlan } from "@holdfast/client";
import { proofOf } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

interface PlanOptions extends GlobalOptions {
  readonly resume: boolean;
}
interface PrepareOptions extends PlanOptions {
  readonly token?: boolean;
  readonly timeout: string;
}

/** `holdfast restart plan|prepare|list` */
export function restartCommands(program: Command, context: CommandContext): void {
  const restart = program.command("restart").description("planned restarts: what comes back, and what does not");
  restart
    .command("plan")
    .description("what a restart would do: what returns, what is held, what is cancelled, and why; changes nothing")
    .argument("[nodes...]", "nodes that are restarted together; default: all that live")
    .option("--no-resume", "as if nothing were to go on by itself")
    .option("--json")
    .action((nodes: readonly string[], options: PlanOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const plan = await holdfast.restarts.plan(nodes, options.resume);
        output.result(plan, planText(plan));
      }),
    );
  restart
    .command("prepare")
    .description("asks a node to store what it keeps, to leave, and to end with exit code 42")
    .argument("<node>")
    .option("--no-resume", "nothing of what it owns goes on by itself afterwards")
    .option("--token", "also prints a one-shot token that its successor may show instead of a supervisor")
    .option("--timeout <ms>", "how long to wait until it is prepared", "10000")
    .option("--json")
    .action((node: string, options: PrepareOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const token = options.token === true ? randomBytes(24).toString("hex") : undefined;
        const { id, actors, keeps, partitions } = await holdfast.restarts.prepare(node, {
          resume: options.resume,
          timeoutMs: Number(options.timeout),
          ...(token !== undefined && { tokenProof: proofOf(token) }),
        });
        const lines = [
          `restart ${id} of ${node} is prepared: ${actors} actors with work; ${partitions.moving.length} partitions are taken over at once, ${partitions.waiting.length} wait for a successor`,
          ...(token === undefined ? [] : [`start the successor with HOLDFAST_RESTART_TOKEN=${token}`]),
        ];
        output.result({ id, node, actors, keeps, partitions, ...(token !== undefined && { token }) }, lines.join("\n"));
      }),
    );
  restart
    .command("list")
    .description("the newest restart of every node, and how far it is")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const rows = await holdfast.restarts.list();
        const lines = rows.map(({ state, restart: { node, id, actors, preparedAtMs, acknowledgement } }) => [
          node,
          id,
          state,
          String(actors),
          new Date(preparedAtMs).toISOString(),
          acknowledgement?.source ?? "",
        ]);
        output.result(
          { restarts: rows.map(({ restart: stored, state }) => ({ ...stored, state })) },
          rows.length === 0
            ? "no restart was prepared"
            : table([["node", "restart", "state", "actors", "prepared", "acknowledged by"], ...lines]),
        );
      }),
    );
}

function planText({ nodes, actors }: RestartPlan): string {
  const count = (wanted: string): number => actors.filter(({ verdict }) => verdict === wanted).length;
  const summary = `${nodes.join(", ")}: ${count("returns")} return, ${count("held")} held, ${count("cancelled")} cancelled`;
  if (actors.length === 0) return summary;
  return `${summary}\n${table([["actor", "verdict", "why"], ...actors.map(({ key, verdict, why }) => [key, verdict, why])])}`;
}
