import { setTimeout as delay } from "node:timers/promises";
import { RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

interface DrainOptions extends GlobalOptions {
  readonly timeout: string;
}

const LOOK_MS = 250;

/** `holdfast node drain <name>` */
export function nodeCommands(program: Command, context: CommandContext): void {
  const node = program.command("node").description("one node of the fleet");
  node
    .command("drain")
    .description("asks a node to leave: its partitions move at once, its running jobs end first")
    .argument("<name>")
    .option("--timeout <seconds>", "how long to wait until it has left", "660")
    .option("--json")
    .action((name: string, options: DrainOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const startedAtMs = performance.now();
        const incarnation = await holdfast.askToLeave(name);
        output.say(`${name}: asked to leave`);
        for (let said = ""; ; await delay(LOOK_MS)) {
          const { nodes } = await holdfast.read.fleet();
          const found = nodes.find((one) => one.incarnation === incarnation);
          const waitedMs = Math.round(performance.now() - startedAtMs);
          if (found === undefined || found.state === "left") {
            output.result({ node: name, incarnation, state: "left", waitedMs }, `${name}: left after ${waitedMs} ms`);
            return;
          }
          if (waitedMs > Number(options.timeout) * 1000) {
            throw new RuntimeFault(
              "HF-4008",
              `Node ${name}: asked to leave, and still ${found.state} after ${waitedMs} ms with ${found.jobs} jobs. It goes on leaving; look at holdfast fleet.`,
            );
          }
          const now = `${name}: ${found.state}, ${found.jobs} jobs`;
          if (now !== said) output.say(now);
          said = now;
        }
      }),
    );
}
