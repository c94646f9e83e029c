import type { ToolDefinition } from "@holdfast/protocol";
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
