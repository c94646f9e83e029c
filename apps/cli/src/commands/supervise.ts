import { randomBytes } from "node:crypto";
import { supervise } from "@holdfast/node-app";
import type { Command } from "commander";
import type { CommandContext } from "./command-context.ts";
import { connect } from "./connect.ts";

export interface SuperviseContext extends CommandContext {
  /** Environment of this process. */
  readonly environment: () => Readonly<Record<string, string | undefined>>;
}

/** `holdfast supervise` */
export function superviseCommand(program: Command, context: SuperviseContext): void {
  program
    .command("supervise")
    .description("runs an agent node, acknowledges its planned restarts, and starts it again after them")
    .action(async () => {
      const config = context.config();
      process.exitCode = await supervise({
        env: { ...context.environment(), HOLDFAST_OPERATOR_USER: undefined, HOLDFAST_OPERATOR_PASSWORD: undefined },
        randomHex: (bytes) => randomBytes(bytes).toString("hex"),
        acknowledge: async (report) => {
          await using client = await connect(config, "operator");
          return await client.holdfast.restarts.acknowledge(report); // it must be stored before the connection goes
        },
        say: (event, facts) => void process.stderr.write(`${JSON.stringify({ event, ...facts })}\n`),
        print: (line) => void process.stdout.write(`${line}\n`),
      });
    });
}
