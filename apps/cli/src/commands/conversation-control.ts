import type { PlainEvent } from "@holdfast/protocol";
import { Option, type Command } from "commander";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { tagOption } from "./tag-option.ts";

interface DescribeOptions extends GlobalOptions {
  readonly title?: string;
  readonly tag?: Readonly<Record<string, string>>;
}

/** What is one event to a conversation, and its meaning. */
const VERBS = [
  ["run", "answer the messages that wait"],
  ["pause", "stop before the next model call"],
  ["resume", "go on"],
  ["interrupt", "stop the running step now"],
  ["condense", "replace what the model is shown of the past by a summary"],
  ["close", "end it"],
] as const;

export function controlCommands(conversation: Command, context: CommandContext): void {
  const tell = (id: string, event: PlainEvent, options: GlobalOptions): Promise<void> =>
    withClient(context, options, "client", async ({ holdfast }, output) => {
      const result = await holdfast.send({ type: "conversation", id }, event);
      output.result({ id, result }, resultText(result));
      if (result.kind === "refused") process.exitCode = 1;
    });

  for (const [verb, description] of VERBS) {
    conversation
      .command(verb)
      .description(description)
      .argument("<id>")
      .option("--json")
      .action((id: string, options: GlobalOptions) => tell(id, { type: verb }, options));
  }

  conversation
    .command("describe")
    .description("replace its title, or all of its tags")
    .argument("<id>")
    .option("--title <text>", "a name for people")
    .option("--tag <name=value>", "may be given several times", tagOption)
    .option("--json")
    .action((id: string, { title, tag: tags, ...options }: DescribeOptions) =>
      tell(
        id,
        { type: "describe", ...(title !== undefined && { title }), ...(tags !== undefined && { tags }) },
        options,
      ),
    );

  conversation
    .command("model")
    .description("another model from the next model call on")
    .argument("<id>")
    .argument("<model>")
    .option("--json")
    .action((id: string, model: string, options: GlobalOptions) => tell(id, { type: "switchModel", model }, options));

  conversation
    .command("delete")
    .description("end it and remove what it holds")
    .argument("<id>")
    .addOption(
      new Option("--children <policy>", "what becomes of its open tasks and questions")
        .choices(["cancel", "await"])
        .default("cancel"),
    )
    .option("--json")
    .action((id: string, { children, ...options }: GlobalOptions & { readonly children: string }) =>
      tell(id, { type: "delete", children }, options),
    );
}
