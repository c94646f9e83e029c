import { AgentDefinition, Budget } from "@holdfast/protocol";
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
  /** Greatest depth of the tasks below it; absent: that of the fleet. */
  maxDepth: z.int().min(0).max(MAX_DELEGATION_DEPTH).optional(),
  /** Without any activity for so long, ms, it is stopped. Absent: it may be silent. */
  idleMs: z.int().min(1000).max(MAX_DELAY_MS).optional(),
  /** Somebody above has an idle limit: what happens in it is told upwards. */
  wantsPulse: z.boolean().optional(),
  /** It rests when it has ended and takes follow-ups, until the conversation that delegated it lets it go. */
  isKept: z.boolean().optional(),
  /** It may ask that conversation. */
  canAsk: z.boolean().optional(),
  /** It is queued until that conversation gives it its turn. */
  isHeld: z.boolean().optional(),
  /** Who pays for it: one limit holds for the whole tree. */
  budget: Budget.optional(),
  /** Conversation of a person at the top of all this: roots take turns. Absent: what it delegates for has a turn already. */
  root: z.string().max(80).optional(),
});
export type TaskInput = Readonly<z.infer<typeof TaskInput>>;
