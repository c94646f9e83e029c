import { randomBytes } from "node:crypto";
import { agentNamed } from "@holdfast/agents";
import { foldTranscript } from "@holdfast/machines";
import { isErrorCode, RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

interface StartOptions extends GlobalOptions {
  readonly id?: string;
  readonly agent: string;
  readonly title?: string;
}
interface SendOptions extends GlobalOptions {
  readonly messageId?: string;
}

/** `holdfast conversation …` */
export function conversationCommands(program: Command, context: CommandContext): void {
  const conversation = program.command("conversation").description("talk to agents");

  conversation
    .command("start")
    .argument("[prompt]", "first message")
    .option("--id <id>", "id; the same id finds the same conversation")
    .option("--agent <name>", "which agent", "surveyor")
    .option("--title <text>", "a name for people")
    .option("--json")
    .action((prompt: string | undefined, options: StartOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const id = options.id ?? `c-${randomBytes(6).toString("hex")}`;
        const { agent, agents } = agentNamed(options.agent, context.config().HOLDFAST_MODEL);
        const input = {
          agent,
          agents,
          ...(prompt !== undefined && { prompt }),
          ...(options.title !== undefined && { title: options.title }),
        };
        const result = await holdfast.start("conversation", id, input);
        output.result({ id, key: holdfast.key("conversation", id), result }, `${id}: ${resultText(result)}`);
      }),
    );

  conversation
    .command("send")
    .argument("<id>")
    .argument("<text>")
    .option("--message-id <id>", "the same id is taken once")
    .option("--json")
    .action((id: string, text: string, options: SendOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const messageId = options.messageId ?? `m-${randomBytes(6).toString("hex")}`;
        const result = await holdfast.send(
          { type: "conversation", id },
          { type: "userMessage", messageId, text },
          { idempotencyKey: messageId },
        );
        if (result.kind === "refused")
          throw new RuntimeFault(
            isErrorCode(result.code) ? result.code : "HF-3001",
            `Conversation ${id}: ${result.reason}`,
          );
        output.result({ id, messageId, result }, resultText(result));
      }),
    );

  for (const verb of ["pause", "resume", "interrupt", "close"] as const) {
    conversation
      .command(verb)
      .argument("<id>")
      .option("--json")
      .action((id: string, options: GlobalOptions) =>
        withClient(context, options, "client", async ({ holdfast }, output) => {
          const result = await holdfast.send({ type: "conversation", id }, { type: verb });
          output.result({ id, result }, resultText(result));
          if (result.kind === "refused") process.exitCode = 1;
        }),
      );
  }

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
        const transcript = foldTranscript((await holdfast.read.journal(key)).map(({ event }) => event));
        const lines = transcript.map((message) => {
          if (message.role === "user") return `you: ${message.text}`;
          if (message.role === "tool")
            return message.results.map(({ name, content }) => `  ${name} → ${oneLine(content)}`).join("\n");
          const calls = message.toolCalls.map(({ name, input }) => `  ${name}(${oneLine(JSON.stringify(input))})`);
          return [...(message.text === "" ? [] : [`agent: ${message.text}`]), ...calls].join("\n");
        });
        output.result(
          { id, key, status: actor.header.list, rev: actor.header.rev, transcript },
          [`${id}: ${String(actor.header.list["status"])}`, ...lines].join("\n"),
        );
      }),
    );

  conversation
    .command("list")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const headers = await holdfast.read.headers("conversation");
        const own = headers.filter(({ list }) => list["task"] === undefined);
        const rows = own.map(({ key, rev, list }) => ({ id: key.split(".")[2] ?? key, ...list, rev }));
        output.result(
          { conversations: rows },
          table([
            ["conversation", "status", "agent", "title", "revision"],
            ...own.map(({ key, rev, list }) => [
              key.split(".")[2] ?? key,
              String(list["status"] ?? ""),
              String(list["agent"] ?? ""),
              String(list["title"] ?? ""),
              rev,
            ]),
          ]),
        );
      }),
    );
}

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
};
