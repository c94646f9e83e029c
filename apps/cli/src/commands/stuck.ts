import { writeFile } from "node:fs/promises";
import type { OperatorVerb } from "@holdfast/protocol";
import type { Command } from "commander";
import type { Client } from "holdfast";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { askOwner, outcomeText, type VerbOptions } from "./operator-verb.ts";
import { targetOf } from "./target.ts";

interface ListOptions extends GlobalOptions {
  readonly kind?: string;
  readonly type?: string;
}

/** `holdfast stuck` and what an operator can do about it. */
export function stuckCommands(program: Command, context: CommandContext): void {
  const stuck = program
    .command("stuck")
    .description("what cannot go on by itself, and why")
    .option("--kind <kind>", "only this kind: parked, quarantined, …")
    .option("--type <type>", "only actors of this type")
    .option("--json")
    .action((options: ListOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const rows = (await holdfast.stuck.list()).filter(
          ({ key, kind }) =>
            (options.kind === undefined || kind === options.kind) &&
            (options.type === undefined || key.split(".")[1] === options.type),
        );
        output.result(
          { stuck: rows },
          rows.length === 0
            ? "nothing is stuck"
            : table([
                ["actor", "kind", "code", "attempts", "message", "node", "since", "why", "fix"],
                ...rows.map(({ key, kind, code = "", attempts = "", messageId = "", node, firstMs, why, fix = "" }) => [
                  key,
                  kind,
                  code,
                  attempts,
                  messageId,
                  node,
                  firstMs === undefined ? "" : new Date(firstMs).toISOString(),
                  why,
                  fix,
                ]),
              ]),
        );
      }),
    );

  const verb = (name: OperatorVerb, description: string): Command =>
    stuck
      .command(name)
      .description(description)
      .argument("<actor>", "<type>/<id> or key")
      .option("--timeout <ms>", "how long to wait for a node", "10000")
      .option("--json");

  const carryOut = (name: OperatorVerb, target: string, options: VerbOptions & GlobalOptions): Promise<void> => {
    // `--json` before the verb belongs to the list, which stands in the same place.
    const all = { ...options, ...stuck.opts<GlobalOptions>() };
    return withClient(context, all, "operator", async (client, output) => {
      const { key, outcome } = await askOwner(client, name, target, options);
      output.result({ key, verb: name, outcome }, outcomeText(outcome));
    });
  };

  verb("retry", "loads an actor anew and offers it what was set aside")
    .option("--message <id>", "only this message")
    .action((target: string, options: VerbOptions) => carryOut("retry", target, options));
  verb("skip", "passes over the oldest quarantined message, or the one that is named")
    .option("--message <id>", "this message")
    .action((target: string, options: VerbOptions) => carryOut("skip", target, options));
  verb("park", "stops an actor: nothing of it runs, its messages wait").action((target: string, options: VerbOptions) =>
    carryOut("park", target, options),
  );

  stuck
    .command("export")
    .description("writes everything that is stored of an actor into a file")
    .argument("<actor>", "<type>/<id> or key")
    .requiredOption("--to <file>")
    .option("--json")
    .action((target: string, options: GlobalOptions & { readonly to: string }) =>
      withClient(context, { ...options, ...stuck.opts<GlobalOptions>() }, "operator", async (client, output) => {
        const exported = await client.holdfast.stuck.export(keyOf(client, target));
        await writeFile(options.to, `${JSON.stringify(exported, undefined, 2)}\n`, { flag: "wx", mode: 0o600 });
        const { key, entries, messages } = exported;
        output.result(
          { key, file: options.to, entries: entries.length, messages: messages.length },
          `${options.to}: ${key}, ${entries.length} entries, ${messages.length} messages`,
        );
      }),
    );
}

const keyOf = ({ holdfast }: Client, target: string): string => targetOf(target, (type, id) => holdfast.key(type, id));
