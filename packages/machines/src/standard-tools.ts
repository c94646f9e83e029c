import {
  AskParentArguments,
  TaskArguments,
  TaskGroupArguments,
  TaskOutputArguments,
  TaskStopArguments,
  type ToolDefinition,
} from "@holdfast/protocol";
import { z } from "zod";
import { DelegateArguments } from "./call-arguments.ts";
import { MAX_DELAY_MS } from "./task-input.ts";

// A plain part of `Question`: models cope badly with schemas that describe schemas.
const AskArguments = z.object({
  question: z.string().min(1).max(8000),
  reason: z.string().max(2000).optional().describe("Why the answer is needed."),
  options: z.array(z.string()).max(32).optional().describe("The answer is one of these. Without them it is free text."),
  default: z.string().optional().describe('The answer that is taken when nobody answers and onExpiry is "default".'),
  expiresInMs: z.int().min(1000).max(MAX_DELAY_MS).optional().describe("Milliseconds the question stays open."),
  onExpiry: z.enum(["fail", "default"]).optional(),
});

const schemaOf = (arguments_: z.ZodType): Record<string, unknown> => z.toJSONSchema(arguments_, { io: "input" });

/** The usual tool of kind `delegate`: the agent hands work to another one and gets its answer. */
export const TASK_TOOL: ToolDefinition = {
  name: "task",
  description: "Give a piece of work to another agent and wait for its answer. Several calls at once work in parallel.",
  inputSchema: schemaOf(DelegateArguments),
  kind: "delegate",
  crashPolicy: "idempotent",
};

const tool = (
  name: string,
  kind: ToolDefinition["kind"],
  description: string,
  arguments_: z.ZodType,
): ToolDefinition => ({ name, description, inputSchema: schemaOf(arguments_), kind, crashPolicy: "idempotent" });

/**
 * The tools of an agent whose tasks can be continued: its results name the task, and `resume` goes on with it. Where an agent has them, its
 * `task` replaces {@link TASK_TOOL}.
 */
export const TASK_TOOLS: readonly ToolDefinition[] = [
  tool(
    "task",
    "delegate",
    "Give a piece of work to another agent, or with resume go on with an earlier task: a further message, or the answer to its question. Several calls at once work in parallel.",
    TaskArguments,
  ),
  tool(
    "task_group",
    "taskGroup",
    "Give several pieces of work to agents at once and wait for all, any, a quorum or the first of them.",
    TaskGroupArguments,
  ),
  tool(
    "task_output",
    "taskOutput",
    "What became of a task: its result, its question, or its status.",
    TaskOutputArguments,
  ),
  tool("task_stop", "taskStop", "Stop a task. It can be continued with resume.", TaskStopArguments),
];

/** The tool with which a sub-agent asks the agent that delegated the work. It goes on when it has the answer. */
export const ASK_PARENT_TOOL: ToolDefinition = tool(
  "ask_parent",
  "askParent",
  "Ask the agent that gave you this work, and wait for the answer.",
  AskParentArguments,
);

/** The usual tool of kind `ask`: the agent asks a person and waits for the answer. */
export const ASK_OWNER_TOOL: ToolDefinition = {
  name: "ask_owner",
  description: "Ask a person and wait for the answer. Silence is not consent.",
  inputSchema: schemaOf(AskArguments),
  kind: "ask",
  crashPolicy: "idempotent",
};
