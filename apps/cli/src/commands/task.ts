import { randomBytes } from "node:crypto";
import { TaskContext } from "@holdfast/machines";
import { agentDigest, RuntimeFault, type RecordHeader } from "@holdfast/protocol";
import type { HoldfastClient, StoredActor } from "@holdfast/client";
import type { Command } from "commander";
import { table } from "../output.ts";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

/** Finds a task by id; ids are unique, so the id is enough. */
async function findTask(
  holdfast: HoldfastClient,
  id: string,
): Promise<{ readonly header: RecordHeader; readonly actor: StoredActor }> {
  const header = (await holdfast.read.headers("task")).find(({ key }) => key.split(".")[2] === id);
  const actor = header === undefined ? undefined : await holdfast.read.actor(header.key);
  if (header === undefined || actor === undefined)
    throw new RuntimeFault("HF-3001", `task ${id}: there is none. "holdfast task list" shows all.`);
  return { header, actor };
}

/** The definition a task works by: the one it was started with, whatever files and builds say by now. */
function definitionOf(actor: StoredActor): { readonly definition?: Readonly<Record<string, unknown>> } {
  const { data } = TaskContext.safeParse(actor.record.snapshot.context);
  if (data === undefined) return {};
  const { name, model, tools, limits } = data.subagent;
  const definition = { name, digest: agentDigest(data.subagent), model, tools: tools.map((tool) => tool.name), limits };
  return { definition };
}

/** `holdfast task …` */
export function taskCommands(program: Command, context: CommandContext): void {
  const task = program.command("task").description("work delegated to sub-agents");
  task
    .command("list")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const headers = await holdfast.read.headers("task");
        const idOf = ({ key }: RecordHeader): string => key.split(".")[2] ?? key;
        output.result(
          { tasks: headers.map((header) => ({ id: idOf(header), ...header.list, rev: header.rev })) },
          table([
            ["task", "status", "agent", "cause"],
            ...headers.map((header) => [
              idOf(header),
              String(header.list["status"] ?? ""),
              String(header.list["agent"] ?? ""),
              String(header.list["cause"] ?? ""),
            ]),
          ]),
        );
      }),
    );
  task
    .command("show")
    .argument("<id>")
    .option("--json")
    .action((id: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { header, actor } = await findTask(holdfast, id);
        const value = {
          id,
          key: header.key,
          ...header.list,
          rev: header.rev,
          parent: actor.record.parent?.key,
          ...definitionOf(actor),
          output: actor.record.snapshot.output,
        };
        output.result(value, JSON.stringify(value, undefined, 2));
      }),
    );
  task
    .command("cancel")
    .argument("<id>")
    .option("--reason <text>")
    .option("--json")
    .action((id: string, options: GlobalOptions & { readonly reason?: string }) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { header } = await findTask(holdfast, id);
        const result = await holdfast.send(header.key, {
          type: "cancel",
          ...(options.reason !== undefined && { reason: options.reason }),
        });
        output.result({ id, result }, resultText(result));
        if (result.kind === "refused") process.exitCode = 1;
      }),
    );
  task
    .command("message")
    .argument("<id>")
    .argument("<text>", "a further message, or the answer to its question")
    .option("--message-id <id>", "the same id is taken once")
    .option("--json")
    .action((id: string, text: string, options: GlobalOptions & { readonly messageId?: string }) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { header } = await findTask(holdfast, id);
        const messageId = options.messageId ?? `m-${randomBytes(6).toString("hex")}`;
        const event = { type: "followUp", messageId, text };
        const result = await holdfast.send(header.key, event, { idempotencyKey: messageId });
        output.result({ id, messageId, result }, resultText(result));
        if (result.kind === "refused") process.exitCode = 1;
      }),
    );
}
