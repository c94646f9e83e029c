import { readTranscript } from "@holdfast/node-app";
import { RuntimeFault, type RecordHeader, type TranscriptMessage } from "@holdfast/protocol";
import type { Command } from "commander";
import { z } from "zod";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { tagOption, type Tags } from "./tag-option.ts";

interface ListOptions extends GlobalOptions {
  readonly all?: boolean;
  readonly status?: string;
  readonly tag?: Tags;
  readonly user?: string;
  readonly tenant?: string;
}

// What is shown of a context; whatever an older build did not know is absent.
const Shown = z.looseObject({
  usage: z.looseObject({ modelCalls: z.number(), inputTokens: z.number(), outputTokens: z.number() }).optional(),
  lastFailure: z.looseObject({ cause: z.string(), code: z.string(), message: z.string() }).optional(),
  agent: z.looseObject({ model: z.string() }).optional(),
  forks: z.array(z.string()).optional(),
});

export function viewCommands(conversation: Command, context: CommandContext): void {
  conversation
    .command("show")
    .argument("<id>")
    .option("--json")
    .action((id: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const key = holdfast.key("conversation", id);
        const actor = await holdfast.read.actor(key);
        if (actor === undefined)
          throw new RuntimeFault(
            "HF-3001",
            `Conversation ${id}: there is none. "holdfast conversation list" shows all.`,
          );
        const { list, rev } = actor.header;
        // A tombstone has no journal; of everything else the journal follows the record by a moment.
        if (actor.record.tombstone === undefined) await holdfast.read.journalThrough(key, rev);
        const transcript = await readTranscript(holdfast.read, key);
        const { usage, lastFailure, agent, forks } = Shown.safeParse(actor.record.snapshot.context).data ?? {};
        const failure = list["cause"] === undefined ? undefined : lastFailure;
        const shown = { model: agent?.model, usage, failure, forks };
        const why = failure === undefined ? [] : [`${failure.cause}: ${failure.code} ${failure.message}`];
        output.result(
          { id, key, status: list, rev, ...shown, transcript },
          [`${id}: ${String(list["status"])}`, ...why, ...transcript.map(linesOf)].join("\n"),
        );
      }),
    );

  conversation
    .command("answer")
    .description("the last answer of the agent")
    .argument("<id>")
    .option("--json")
    .action((id: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const answer = await holdfast.conversations.finalAnswer(id);
        output.result({ id, answer: answer?.text, rev: answer?.rev }, answer?.text ?? "");
      }),
    );

  conversation
    .command("list")
    .option("--all", "those of tasks, questions aside and deleted ones too")
    .option("--status <status>")
    .option("--tag <name=value>", "may be given several times", tagOption)
    .option("--user <id>")
    .option("--tenant <id>")
    .option("--json")
    .action((options: ListOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const headers = (await holdfast.read.headers("conversation")).filter((header) => isWanted(header, options));
        const rows = headers.map(({ key, rev, list }) => ({ id: idOf(key), ...list, rev }));
        const columns = ["status", "agent", "title"];
        output.result(
          { conversations: rows },
          table([
            ["conversation", ...columns, "revision"],
            ...headers.map(({ key, rev, list }) => [
              idOf(key),
              ...columns.map((column) => String(list[column] ?? "")),
              rev,
            ]),
          ]),
        );
      }),
    );
}

const idOf = (key: string): string => key.split(".")[2] ?? key;

function isWanted({ list }: RecordHeader, { all, status, tag = {}, user, tenant }: ListOptions): boolean {
  const isOwn = list["task"] === undefined && list["aside"] !== true && list["deleted"] !== true;
  const wanted = {
    ...(status !== undefined && { status }),
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    ...Object.fromEntries(Object.entries(tag).map(([name, value]) => [`tag.${name}`, value])),
  };
  return (isOwn || all === true) && Object.entries(wanted).every(([field, value]) => list[field] === value);
}

function linesOf(message: TranscriptMessage): string {
  if (message.role === "user") return `you: ${message.text}`;
  if (message.role === "tool")
    return message.results.map(({ name, content }) => `  ${name} → ${oneLine(content)}`).join("\n");
  const calls = message.toolCalls.map(({ name, input }) => `  ${name}(${oneLine(JSON.stringify(input))})`);
  return [...(message.text === "" ? [] : [`agent: ${message.text}`]), ...calls].join("\n");
}

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
};
