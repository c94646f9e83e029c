import type { PanicAnswers } from "@holdfast/client";
import { RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import type { Output } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

interface PanicOptions extends GlobalOptions {
  readonly reason: string;
  readonly timeout: string;
}

/** `holdfast panic` and `holdfast panic clear` */
export function panicCommands(program: Command, context: CommandContext): void {
  const panic = program
    .command("panic")
    .description("stops the whole fleet: nothing is taken in, every job is aborted, no model is called")
    .option("--reason <text>", "for whoever reads it later", "none was given")
    .option("--timeout <ms>", "how long to wait for the nodes", "10000")
    .option("--json")
    .action((options: PanicOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const startedAtMs = performance.now();
        const { revision, by, reason } = await holdfast.panic.raise(options.reason);
        output.say(`stopped by ${by} (${reason}), revision ${revision}`);
        const answers = await holdfast.panic.answers(revision, Number(options.timeout));
        report(output, answers, Math.round(performance.now() - startedAtMs));
      }),
    );
  panic
    .command("clear")
    .description("lifts that: what was accepted goes on, jobs that were cut off stay held")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, { ...options, ...panic.opts<GlobalOptions>() }, "operator", async ({ holdfast }, output) => {
        const before = await holdfast.panic.state();
        const { revision } = await holdfast.panic.clear();
        const text = before.isRaised
          ? `lifted, revision ${revision}; "holdfast held list" shows what was cut off, "holdfast held resume" lets it go on`
          : "the fleet is not stopped";
        output.result({ revision, wasRaised: before.isRaised }, text);
      }),
    );
}

/** @throws RuntimeFault HF-4008 when a live node has not said that it has stopped */
function report(output: Output, answers: PanicAnswers, waitedMs: number): void {
  const { revision, stopped, unanswered, silent } = answers;
  for (const node of silent) output.say(`${node}: not heard of; it stops when it wakes`);
  if (unanswered.length > 0) {
    throw new RuntimeFault(
      "HF-4008",
      `Stop flag, revision ${revision}: ${unanswered.join(", ")} did not say within ${waitedMs} ms that they have stopped. They stop as soon as they read it; until then end their processes, or ask again.`,
      { facts: { revision, stopped: stopped.join(","), unanswered: unanswered.join(","), silent: silent.join(",") } },
    );
  }
  output.result({ ...answers, waitedMs }, `${stopped.length} nodes have stopped after ${waitedMs} ms`);
}
