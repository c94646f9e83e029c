import { randomBytes } from "node:crypto";
import { InvalidArgumentError, type Command } from "commander";
import { agentsOf } from "../agents-of.ts";
import { budgetOf, withBudgetOptions, type BudgetOptions } from "./budget-option.ts";
import { resultText } from "../result-text.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { controlCommands } from "./conversation-control.ts";
import { viewCommands } from "./conversation-view.ts";
import { tagOption, type Tags } from "./tag-option.ts";

interface StartOptions extends GlobalOptions, BudgetOptions {
  readonly id?: string;
  readonly agent: string;
  readonly title?: string;
  readonly tag?: Tags;
  readonly user?: string;
  readonly tenant?: string;
}
interface SendOptions extends GlobalOptions {
  readonly messageId?: string;
  readonly run: boolean;
}
interface ForkCommandOptions extends GlobalOptions {
  readonly as?: string;
  readonly rev?: number;
  readonly title?: string;
}
interface AskOptions extends GlobalOptions {
  readonly askId?: string;
  readonly timeout: number;
}

const numberOption = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError("Expected a whole number from 1.");
  return number;
};

const newId = (prefix: string): string => `${prefix}-${randomBytes(6).toString("hex")}`;

/** `holdfast conversation …` */
export function conversationCommands(program: Command, context: CommandContext): void {
  const conversation = program.command("conversation").description("talk to agents");
  talkCommands(conversation, context);
  controlCommands(conversation, context);
  viewCommands(conversation, context);
}

function talkCommands(conversation: Command, context: CommandContext): void {
  withBudgetOptions(conversation.command("start"))
    .argument("[prompt]", "first message")
    .option("--id <id>", "id; the same id with the same content finds the same conversation")
    .option("--agent <name>", "which agent", "surveyor")
    .option("--title <text>", "a name for people")
    .option("--tag <name=value>", "for filters; may be given several times", tagOption)
    .option("--user <id>", "for whom, when you are a service")
    .option("--tenant <id>", "for whose tenant")
    .option("--json")
    .action((prompt: string | undefined, options: StartOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { id = newId("c"), title, tag: tags, user, tenant } = options;
        const config = context.config();
        const agents = (await agentsOf(config)).forConversation(options.agent, config.HOLDFAST_MODEL);
        const budget = budgetOf(options);
        const onBehalf = { ...(user !== undefined && { user }), ...(tenant !== undefined && { tenant }) };
        const input = {
          ...agents,
          ...(prompt !== undefined && { prompt }),
          ...(title !== undefined && { title }),
          ...(tags !== undefined && { tags }),
          ...(budget !== undefined && { budget }),
        };
        const result = await holdfast.conversations.start(id, input, onBehalf);
        output.result({ id, key: holdfast.key("conversation", id), result }, `${id}: ${resultText(result)}`);
      }),
    );

  conversation
    .command("send")
    .argument("<id>")
    .argument("<text>")
    .option("--message-id <id>", "the same id is taken once")
    .option("--no-run", "keep it for the next turn, open none")
    .option("--json")
    .action((id: string, text: string, options: SendOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { messageId = newId("m"), run } = options;
        const result = await holdfast.conversations.send(id, text, { messageId, ...(!run && { run }) });
        output.result({ id, messageId, result }, resultText(result));
      }),
    );

  conversation
    .command("fork")
    .description("go on from a place in a conversation, in a new one")
    .argument("<id>")
    .argument("[prompt]", "its first message of its own")
    .option("--as <id>", "id of the fork; the same id finds the same fork")
    .option("--rev <n>", "last revision they share; default: the present one", numberOption)
    .option("--title <text>", "a name for people")
    .option("--json")
    .action((id: string, prompt: string | undefined, options: ForkCommandOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const { as = newId("c"), rev, title } = options;
        const result = await holdfast.conversations.fork(id, {
          as,
          ...(rev !== undefined && { rev }),
          ...(prompt !== undefined && { prompt }),
          ...(title !== undefined && { title }),
        });
        output.result({ id: as, forkOf: id, key: holdfast.key("conversation", as), result }, `${as}: fork of ${id}`);
      }),
    );

  conversation
    .command("ask")
    .description("ask about a conversation and leave it as it is")
    .argument("<id>")
    .argument("<question>")
    .option("--ask-id <id>", "the same id has the same answer")
    .option("--timeout <seconds>", "how long to wait", numberOption, 120)
    .option("--json")
    .action((id: string, question: string, { askId = newId("aside"), timeout, ...options }: AskOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const answer = await holdfast.conversations.askAside(id, question, { askId, timeoutMs: timeout * 1000 });
        output.result({ id, askId, answer }, answer);
      }),
    );
}
