import type { ToolDefinition } from "@holdfast/protocol";
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

/** The usual tool of kind `ask`: the agent asks a person and waits for the answer. */
export const ASK_OWNER_TOOL: ToolDefinition = {
  name: "ask_owner",
  description: "Ask a person and wait for the answer. Silence is not consent.",
  inputSchema: schemaOf(AskArguments),
  kind: "ask",
  crashPolicy: "idempotent",
};
