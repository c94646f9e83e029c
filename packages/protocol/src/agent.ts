import { z } from "zod";
import { hash128 } from "./hash.ts";

/** A tool as a model sees it, and how its calls are carried out. Plain data: it is stored with the work that uses it. */
export const ToolDefinition = z.object({
  name: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
  description: z.string(),
  /** JSON Schema of the arguments. */
  inputSchema: z.record(z.string(), z.unknown()),
  /**
   * `local`: a function of the node. `delegate`: starts a task, or continues one. `taskGroup`: starts several. `taskOutput`, `taskStop`: of a
   * task that was started. `ask`: opens an owner-wait. `askParent`: asks whoever delegated the work.
   */
  kind: z.enum(["local", "delegate", "taskGroup", "taskOutput", "taskStop", "ask", "askParent"]),
  crashPolicy: z.enum(["idempotent", "dedupeKey", "unsafe"]).default("idempotent"),
});
export type ToolDefinition = z.infer<typeof ToolDefinition>;

export const AgentLimits = z.object({
  /** Model calls per user message. */
  maxIterations: z.int().min(1).max(1000).default(50),
  /** Time of own work in one turn, ms: that in which only tasks or people are waited for does not count. */
  maxTurnMs: z.int().min(1000).default(3_600_000),
  /** Tasks that have not ended; a further one is refused. Absent: 64. */
  maxOpenTasks: z.int().min(1).max(256).optional(),
  /** Tasks that run at the same time; further ones are queued. Absent: all. */
  maxRunningTasks: z.int().min(1).max(256).optional(),
  /** Levels of delegation below it, at most what the fleet allows. Absent: that. */
  maxTaskDepth: z.int().min(0).max(8).optional(),
  /** Tools of the node that run at the same time; further calls of a step wait their turn. Absent: all of them. */
  maxParallelTools: z.int().min(1).max(64).optional(),
  /** Questions to people that are open at the same time; a further one is refused, an open one stays. Absent: 64. */
  maxOpenWaits: z.int().min(1).max(64).optional(),
  /** Tokens, read and written, per user message. Absent: as many as it takes. */
  maxTokens: z.int().min(1).optional(),
  /** Tokens of one answer. Absent: as many as the model gives; where a wallet pays, 8192. */
  maxOutputTokens: z.int().min(1).optional(),
  /** Millionths of a US dollar per user message; needs a price for the model. Absent: no limit. */
  maxCostMicroUsd: z.int().min(1).optional(),
  /** Tokens that a model call has read and written from which on the past is condensed before the next one. Absent: only when it is asked for. */
  condenseAboveTokens: z.int().min(1).optional(),
  /** Steps after which it counts as stuck, by pattern; 0 turns a rule off. Absent: 4, 3, 3, 6 of the last 20. */
  stuck: z
    .object({
      /** Same calls, same results. */
      repeats: z.int().min(0).max(100),
      /** Same call, each time an error. */
      errors: z.int().min(0).max(100),
      /** Replies of whose calls none could be carried out. */
      monologue: z.int().min(0).max(100),
      /** Back and forth between two things. */
      alternating: z.int().min(0).max(100),
      /** Steps that are looked at. */
      window: z.int().min(1).max(100),
    })
    .partial()
    .optional(),
});
export type AgentLimits = z.infer<typeof AgentLimits>;

/** Name of a model that stands for that of the agent which delegates. */
export const INHERITED_MODEL = "inherit";

/** Millionths of a US dollar for a million tokens. */
export const ModelPrice = z.object({ inputMicroUsd: z.int().min(0), outputMicroUsd: z.int().min(0) });
export type ModelPrice = z.infer<typeof ModelPrice>;

/** An agent: which model, which instructions, which tools, within which limits. */
export const AgentDefinition = z.object({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/),
  /** {@link INHERITED_MODEL}: that of the agent which delegates to it. */
  model: z.string().min(1).max(128),
  /** What it is good for; shown to the agents that may delegate to it. */
  description: z.string().max(500).optional(),
  instructions: z.string().max(64_000).default(""),
  tools: z.array(ToolDefinition).max(128).default([]),
  limits: AgentLimits.prefault({}),
  /** By model. One that is not here has no price, which is not a price of 0. */
  prices: z.record(z.string(), ModelPrice).optional(),
  /** Names of the agents it may delegate to. */
  delegates: z.array(z.string()).max(64).default([]),
});
export type AgentDefinition = z.infer<typeof AgentDefinition>;

/** Short name of what a definition says: another one as soon as anything in it differs. */
export const agentDigest = (agent: AgentDefinition): string =>
  hash128(JSON.stringify(AgentDefinition.parse(agent))).slice(0, 12);

export const ToolCall = z.object({ callId: z.string(), name: z.string(), input: z.unknown() });
export type ToolCall = z.infer<typeof ToolCall>;

/** Exactly one per tool call, in any order of arrival. */
export const ToolResult = z.object({
  callId: z.string(),
  name: z.string(),
  ok: z.boolean(),
  content: z.string(),
});
export type ToolResult = z.infer<typeof ToolResult>;

/** One message of a transcript. */
export const TranscriptMessage = z.discriminatedUnion("role", [
  z.object({ role: z.literal("user"), messageId: z.string(), text: z.string() }),
  z.object({ role: z.literal("assistant"), text: z.string(), toolCalls: z.array(ToolCall) }),
  z.object({ role: z.literal("tool"), results: z.array(ToolResult) }),
]);
export type TranscriptMessage = z.infer<typeof TranscriptMessage>;

/** What the job `model.generate` returns. */
export const ModelReply = z.object({
  text: z.string(),
  toolCalls: z.array(ToolCall),
  finishReason: z.enum(["stop", "length", "toolCalls", "contentFilter", "other"]),
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number() }),
  /** The wallet that paid was fenced meanwhile: nothing new is begun. */
  isFenced: z.boolean().optional(),
});
export type ModelReply = z.infer<typeof ModelReply>;
