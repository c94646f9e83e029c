import {
  AskParentArguments,
  TaskArguments,
  TaskGroupArguments,
  TaskOutputArguments,
  TaskStopArguments,
  type ToolDefinition,
} from "@holdfast/protocol";
import { z } from "zod";
import { describeTool } from "./define-tool.ts";

/** Who may be delegated to, and what for. */
export interface DelegateChoice {
  readonly name: string;
  readonly purpose?: string | undefined;
}

/** The tool `task`: the machine carries it out by starting a task. With no choices the model is not told whom to name. */
export function taskTool(choices: readonly DelegateChoice[] = []): ToolDefinition {
  const names = choices.map(({ name }) => name);
  const list = choices.map(({ name, purpose }) => (purpose === undefined ? name : `${name}: ${purpose}`));
  const subagent = names.length === 0 ? z.string() : z.enum(names);
  return describeTool(
    {
      name: "task",
      description: [
        "Delegates work to another agent and waits for its answer. Several calls in one step run at the same time.",
        ...(list.length === 0 ? [] : [`Agents: ${list.join("; ")}.`]),
      ].join(" "),
      input: z.object({
        subagent: subagent.describe("Name of the agent that is to do the work."),
        prompt: z.string().min(1).describe("The whole assignment; the agent knows nothing else."),
        description: z.string().max(200).optional().describe("A few words for lists."),
      }),
      crashPolicy: "idempotent",
    },
    "delegate",
  );
}

/**
 * The tools of an agent whose tasks can be continued: `task` with `resume` and `background`, `task_group`, `task_output`, `task_stop`. Results
 * name the task, so that the model can go on with it. They take the place of {@link taskTool}.
 */
export function taskTools(choices: readonly DelegateChoice[] = []): readonly ToolDefinition[] {
  const names = choices.map(({ name }) => name);
  const list = choices.map(({ name, purpose }) => (purpose === undefined ? name : `${name}: ${purpose}`));
  const subagent = (names.length === 0 ? z.string() : z.enum(names)).describe(
    "Name of the agent that is to do the work. Not needed with resume.",
  );
  const agents = list.length === 0 ? "" : ` Agents: ${list.join("; ")}.`;
  const tool = (kind: ToolDefinition["kind"], name: string, description: string, input: z.ZodType): ToolDefinition =>
    describeTool({ name, description, input, crashPolicy: "idempotent" }, kind);
  return [
    tool(
      "delegate",
      "task",
      `Delegates work to another agent and waits for it, or goes on with an earlier task: a further message, or the answer to its question. Several calls in one step run at the same time.${agents}`,
      TaskArguments.extend({ subagent: subagent.optional() }),
    ),
    tool(
      "taskGroup",
      "task_group",
      `Delegates several pieces of work at once and waits for all, any, a quorum or the first of them.${agents}`,
      TaskGroupArguments,
    ),
    tool(
      "taskOutput",
      "task_output",
      "Tells what became of a task: its result, its question or its status.",
      TaskOutputArguments,
    ),
    tool("taskStop", "task_stop", "Stops a task. It can be continued with resume.", TaskStopArguments),
  ];
}

/** The tool `ask_parent`: a sub-agent asks the agent that delegated its work, and goes on with the answer. */
export const ASK_PARENT: ToolDefinition = describeTool(
  {
    name: "ask_parent",
    description: "Asks the agent that gave you this work and waits for the answer. Ask only what you cannot decide.",
    input: AskParentArguments,
    crashPolicy: "idempotent",
  },
  "askParent",
);

/** The tool `ask_owner`: the machine carries it out by opening an owner-wait. */
export const ASK_OWNER: ToolDefinition = describeTool(
  {
    name: "ask_owner",
    description:
      "Asks the person who owns this work and waits for the answer, for as long as it takes. Ask only what you cannot decide.",
    input: z.object({
      question: z.string().min(1).max(8000),
      options: z.array(z.string().min(1).max(500)).min(1).max(32).optional().describe("The answer is one of these."),
      default: z
        .string()
        .optional()
        .describe("What you would do without an answer. One of the options, if there are any."),
    }),
    crashPolicy: "idempotent",
  },
  "ask",
);
