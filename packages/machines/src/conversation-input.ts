import { AgentDefinition, Budget } from "@holdfast/protocol";
import { z } from "zod";
import { ForkPoint } from "./conversation-fork.ts";

/** Characters of one user message or prompt. */
export const MAX_MESSAGE_CHARACTERS = 100_000;

/** How deep tasks may delegate: a conversation that a person started has depth 0. */
export const MAX_DELEGATION_DEPTH = 8;

/** The task a conversation works for. */
export const ParentTask = z.object({
  taskId: z.string(),
  /** The tool call of the delegating conversation. */
  callId: z.string(),
  depth: z.int().min(1).max(MAX_DELEGATION_DEPTH),
  /** Greatest depth of the tasks below it; absent: {@link MAX_DELEGATION_DEPTH}. */
  maxDepth: z.int().min(0).max(MAX_DELEGATION_DEPTH).optional(),
  /** The task takes follow-ups: the conversation reports its answers and rests instead of ending. */
  isKept: z.boolean().optional(),
  /** It may ask the conversation that delegated the work. */
  canAsk: z.boolean().optional(),
  /** Somebody above has an idle limit: what happens here is told. */
  wantsPulse: z.boolean().optional(),
});
export type ParentTask = Readonly<z.infer<typeof ParentTask>>;

/** What people know a conversation by. */
export const Title = z.string().min(1).max(200);
export const Tags = z.record(z.string().regex(/^[a-z0-9]{1,64}$/), z.string().max(256));

/** What a conversation is started with. */
export const ConversationInput = z.object({
  agent: AgentDefinition,
  /** Agents it, and the agents it delegates to, may delegate to; by name. */
  agents: z.record(z.string(), AgentDefinition).default({}),
  title: Title.optional(),
  tags: Tags.default({}),
  parentTask: ParentTask.optional(),
  /** It goes on from a place in another one. */
  fork: ForkPoint.optional(),
  /** It is there for one answer, and ends with it: a question aside. */
  once: z.boolean().optional(),
  /** Who pays for its model calls, and for those of all below it. Absent: nobody is asked. */
  budget: Budget.optional(),
  /** First user message; its message id is {@link PROMPT_MESSAGE_ID}. */
  prompt: z.string().min(1).max(MAX_MESSAGE_CHARACTERS).optional(),
});
export type ConversationInput = Readonly<z.infer<typeof ConversationInput>>;

export const PROMPT_MESSAGE_ID = "prompt";
