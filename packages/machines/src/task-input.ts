import { AgentDefinition } from "@holdfast/protocol";
import { z } from "zod";
import { MAX_DELEGATION_DEPTH, MAX_MESSAGE_CHARACTERS } from "./conversation-input.ts";

/** A year: longer deadlines and expiries are a mistake of the model. */
export const MAX_DELAY_MS = 365 * 24 * 3_600_000;

/** What a task is started with. */
export const TaskInput = z.object({
  /** The tool call that delegated it. */
  callId: z.string(),
  /** Its name among the children of the conversation that delegated it. */
  childId: z.string().default(""),
  subagent: AgentDefinition,
  agents: z.record(z.string(), AgentDefinition).default({}),
  prompt: z.string().min(1).max(MAX_MESSAGE_CHARACTERS),
  /** A few words for lists. */
  description: z.string().max(200).default(""),
  /** From its creation, ms. Without it the task may take as long as it takes. */
  deadlineMs: z.int().min(1000).max(MAX_DELAY_MS).optional(),
  depth: z.int().min(1).max(MAX_DELEGATION_DEPTH).default(1),
});
export type TaskInput = Readonly<z.infer<typeof TaskInput>>;
