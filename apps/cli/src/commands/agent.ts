import { agentDigest } from "@holdfast/protocol";
import type { Command } from "commander";
import { agentsOf } from "../agents-of.ts";
import { createOutput, table, type Output } from "../output.ts";
import type { CommandContext, GlobalOptions } from "./command-context.ts";

/** `holdfast agent …`: what the application and the files define; nothing that runs is asked. */
export function agentCommands(program: Command, context: CommandContext): void {
  const agent = program.command("agent").description("agents that work can be given to");
  agent
    .command("list")
    .option("--json")
    .action((options: GlobalOptions) =>
      withOutput(options, async (output) => {
        const entries = (await agentsOf(context.config())).entries();
        const rows = entries.map(({ agent: { name, model, description }, origin, file, digest }) => ({
          name,
          origin,
          model,
          digest,
          ...(description !== undefined && { description }),
          ...(file !== undefined && { file }),
        }));
        output.result(
          { agents: rows },
          table([
            ["agent", "from", "model", "digest", "description"],
            ...rows.map(({ name, origin, model, digest, description = "" }) => [
              name,
              origin,
              model,
              digest,
              description,
            ]),
          ]),
        );
      }),
    );
  agent
    .command("show")
    .argument("<name>")
    .option("--json")
    .action((name: string, options: GlobalOptions) =>
      withOutput(options, async (output) => {
        const definition = (await agentsOf(context.config())).get(name);
        const shown = { digest: agentDigest(definition), ...definition };
        output.result(shown, JSON.stringify(shown, undefined, 2));
      }),
    );
}

async function withOutput(options: GlobalOptions, work: (output: Output) => Promise<void>): Promise<void> {
  const output = createOutput(options.json === true);
  try {
    await work(output);
  } catch (error) {
    output.fail(error);
  }
}
