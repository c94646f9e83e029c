import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { HoldfastClient, SendResult, WaitAnswer } from "@holdfast/client";
import { ExternalId, RuntimeFault } from "@holdfast/protocol";
import { Option, type Command } from "commander";
import { z } from "zod";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

const Action = z.enum(["accept", "edit", "respond", "reject"]);
const Batch = z.array(
  z.strictObject({
    id: ExternalId,
    answerId: ExternalId.optional(),
    action: Action.optional(),
    value: z.json().optional(),
    reason: z.string().optional(),
  }),
);

interface AnswerOptions extends GlobalOptions {
  readonly answerId?: string;
  readonly action?: string;
  readonly form?: string;
  readonly file?: string;
}
interface ReasonOptions extends GlobalOptions {
  readonly answerId?: string;
  readonly reason?: string;
}

/** What is said to questions: `holdfast wait answer`, `decline`, `revoke`, `cancel`, `reassign`, `answer-all`. */
export function waitReplyCommands(wait: Command, context: CommandContext): void {
  const says = (
    options: GlobalOptions,
    id: string,
    say: (waits: HoldfastClient["waits"]) => Promise<{ readonly result: SendResult; readonly answerId?: string }>,
  ): Promise<void> =>
    withClient(context, options, "client", async ({ holdfast }, output) => {
      const { result, ...said } = await say(holdfast.waits);
      output.result({ id, ...said, result }, resultText(result));
      if (result.kind === "refused") process.exitCode = 1;
    });
  wait
    .command("answer")
    .argument("<id>")
    .argument("[value]", "one of the options, or free text")
    .option("--form <json>", "the answer as JSON, for a question with a schema")
    .option("--file <path>", "the same from a file")
    .addOption(new Option("--action <action>", "what to do about it").choices(Action.options))
    .option("--answer-id <id>", "the same id is taken once")
    .option("--json")
    .action((id: string, value: string | undefined, options: AnswerOptions) =>
      says(options, id, async (waits) => {
        const answer = await answerOf(value, options);
        return { answerId: answer.answerId, result: await waits.answer(id, answer) };
      }),
    );
  wait
    .command("decline")
    .argument("<id>")
    .option("--reason <text>")
    .option("--answer-id <id>", "the same id is taken once")
    .option("--json")
    .action((id: string, { answerId = newAnswerId(), reason, ...options }: ReasonOptions) =>
      says(options, id, async (waits) => ({ answerId, result: await waits.decline(id, { answerId, reason }) })),
    );
  wait
    .command("revoke")
    .argument("<id>")
    .argument("<answer id>", "an answer of your own that is not consumed yet")
    .option("--json")
    .action((id: string, answerId: string, options: GlobalOptions) =>
      says(options, id, async (waits) => ({ answerId, result: await waits.revoke(id, answerId) })),
    );
  wait
    .command("cancel")
    .argument("<id>")
    .option("--reason <text>")
    .option("--json")
    .action((id: string, { reason, ...options }: ReasonOptions) =>
      says(options, id, async (waits) => ({ result: await waits.cancel(id, reason) })),
    );
  wait
    .command("reassign")
    .argument("<id>")
    .addOption(new Option("--to <who>", "person-<id>, service-<id> or a word for lists").conflicts("role"))
    .option("--role <role>", "whoever has this role")
    .option("--from <who>", "the one of several approvers who is not asked any more")
    .option("--json")
    .action(
      (id: string, { to, role, from, ...options }: GlobalOptions & { to?: string; role?: string; from?: string }) =>
        says(options, id, async (waits) => {
          if (to !== undefined) return { result: await waits.reassign(id, { assignee: to }, from) };
          if (role !== undefined) return { result: await waits.reassign(id, { role }, from) };
          throw new RuntimeFault("HF-1001", `Question ${id}: to whom? Name --to <who> or --role <role>.`);
        }),
    );
  wait
    .command("answer-all")
    .argument("<file>", "JSON: a list of {id, value?, action?, answerId?, reason?}")
    .option("--json")
    .action((file: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const answers = Batch.safeParse(await jsonIn(file));
        if (!answers.success) throw new RuntimeFault("HF-1001", `${file}: ${z.prettifyError(answers.error)}.`);
        const given = answers.data.map(({ id, answerId = newAnswerId(), action, value, reason }) => ({
          id,
          answerId,
          ...(action !== undefined && { action }),
          ...(value !== undefined && { value }),
          ...(reason !== undefined && { reason }),
        }));
        const results = (await holdfast.waits.answerAll(given)).map((one, n) => ({
          ...one,
          answerId: given[n]?.answerId,
        }));
        const lines = results.map((one) =>
          "fault" in one
            ? `${one.id}  ${one.fault.code}: ${one.fault.message}`
            : `${one.id}  ${resultText(one.result)}`,
        );
        output.result({ results }, lines.join("\n"));
        if (results.some((one) => "fault" in one || one.result.kind === "refused")) process.exitCode = 1;
      }),
    );
}

async function answerOf(text: string | undefined, options: AnswerOptions): Promise<WaitAnswer> {
  const { answerId = newAnswerId(), form, file } = options;
  const action = Action.optional().parse(options.action);
  if ([text, form, file].filter((one) => one !== undefined).length > 1) {
    throw new RuntimeFault("HF-1001", "One answer at a time: text, --form or --file.");
  }
  const value = file !== undefined ? await jsonIn(file) : form !== undefined ? parseJson("--form", form) : text;
  return { answerId, ...(action !== undefined && { action }), ...(value !== undefined && { value }) };
}

async function jsonIn(path: string): Promise<unknown> {
  try {
    return parseJson(path, await readFile(path, "utf8"));
  } catch (error) {
    if (error instanceof RuntimeFault) throw error;
    throw new RuntimeFault("HF-1001", `${path}: it cannot be read. Name another file.`, { cause: error });
  }
}

function parseJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RuntimeFault("HF-1001", `${what}: it is no JSON. Correct it.`, { cause: error });
  }
}

const newAnswerId = (): string => `a-${randomBytes(6).toString("hex")}`;
