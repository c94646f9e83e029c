import { RuntimeFault, toPlainFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { askOwner, outcomeText } from "./operator-verb.ts";

interface ListOptions extends GlobalOptions {
  readonly type?: string;
}
interface HeldOptions extends ListOptions {
  readonly all?: boolean;
  readonly timeout: string;
}

/** `holdfast held list|resume|cancel` */
export function heldCommands(program: Command, context: CommandContext): void {
  const held = program.command("held").description("actors of which nothing goes on before an operator says so");
  held
    .command("list")
    .description("which, since when, and why")
    .option("--type <type>", "only actors of this type")
    .option("--json")
    .action((options: ListOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const rows = (await holdfast.stuck.held()).filter(({ key }) => isOf(key, options.type));
        const lines = rows.map(({ key, firstMs, reason }) => [key, new Date(firstMs).toISOString(), reason]);
        output.result(
          { held: rows.map(({ key, firstMs, reason }) => ({ key, sinceMs: firstMs, why: reason })) },
          rows.length === 0 ? "nothing is held" : table([["actor", "since", "why"], ...lines]),
        );
      }),
    );
  const verb = (name: "resume" | "cancel", description: string): void => {
    held
      .command(name)
      .description(description)
      .argument("[actors...]", "<type>/<id> or key")
      .option("--all", "every actor that is held")
      .option("--type <type>", "with --all: only actors of this type")
      .option("--timeout <ms>", "how long to wait for a node, for each", "10000")
      .option("--json")
      .action((targets: readonly string[], options: HeldOptions) => carryOut(context, name, targets, options));
  };
  verb("resume", "lets them go on: what they were sent comes first, then their jobs run again");
  verb("cancel", "ends their pending jobs as cancelled, and lets them go on from there");
}

const isOf = (key: string, type: string | undefined): boolean => type === undefined || key.split(".")[1] === type;

/** One that is refused does not keep the others back; the status is 1 then. */
function carryOut(
  context: CommandContext,
  verb: "resume" | "cancel",
  targets: readonly string[],
  options: HeldOptions,
): Promise<void> {
  return withClient(context, options, "operator", async (client, output) => {
    const all = options.all === true ? await client.holdfast.stuck.held() : [];
    const wanted = [...targets, ...all.map(({ key }) => key).filter((key) => isOf(key, options.type))];
    if (wanted.length === 0 && options.all !== true)
      throw new RuntimeFault("HF-3105", `Expected actors to ${verb}, found none. Name some, or give --all.`);
    const results: unknown[] = [];
    const lines: string[] = [];
    let refused = 0;
    for (const target of wanted) {
      try {
        const { key, outcome } = await askOwner(client, verb, target, options);
        results.push({ key, outcome });
        lines.push(`${key}: ${outcomeText(outcome)}`);
      } catch (error) {
        const { code, message } = toPlainFault(error, "HF-4001");
        results.push({ key: target, outcome: { kind: "refused", code, reason: message } });
        lines.push(`${target}: ${code} ${message}`);
        refused += 1;
      }
    }
    output.result({ verb, results }, lines.length === 0 ? "nothing is held" : lines.join("\n"));
    if (refused > 0) process.exitCode = 1;
  });
}
