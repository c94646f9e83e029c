import { AgentDefinition, type ModelReply, type ToolCall } from "@holdfast/protocol";
import { ASK_OWNER_TOOL, ASK_PARENT_TOOL, TASK_TOOL, TASK_TOOLS } from "../standard-tools.ts";

const local = (name: string, crashPolicy: "idempotent" | "dedupeKey" | "unsafe") => ({
  name,
  description: `Tool ${name}`,
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  kind: "local" as const,
  crashPolicy,
});

/** An agent with a tool of every kind; `changes` replace single fields. */
export function testAgent(changes: Partial<AgentDefinition> = {}): AgentDefinition {
  return AgentDefinition.parse({
    name: "chief",
    model: "test-model",
    tools: [
      local("read", "idempotent"),
      local("post", "dedupeKey"),
      local("deploy", "unsafe"),
      TASK_TOOL,
      ASK_OWNER_TOOL,
    ],
    delegates: ["reader"],
    ...changes,
  });
}

export const READER = testAgent({ name: "reader", delegates: [] });

/** An agent whose tasks can be continued. */
export const testChief = (limits: Partial<AgentDefinition["limits"]> = {}): AgentDefinition =>
  testAgent({ tools: [...TASK_TOOLS, local("read", "idempotent")], limits: { ...testAgent().limits, ...limits } });

/** An agent that may ask whoever delegated its work. */
export const ASKER = testAgent({ name: "asker", tools: [ASK_PARENT_TOOL], delegates: [] });

/** A reply with tool calls, or with none an answer. */
export function reply(text: string, toolCalls: readonly ToolCall[] = []): ModelReply {
  return {
    text,
    toolCalls: [...toolCalls],
    finishReason: toolCalls.length > 0 ? "toolCalls" : "stop",
    usage: { inputTokens: 10, outputTokens: 5 },
  };
}

export const readCall = (callId: string, path = callId): ToolCall => ({ callId, name: "read", input: { path } });
export const taskCall = (callId: string): ToolCall => ({
  callId,
  name: "task",
  input: { subagent: "reader", prompt: `work of ${callId}` },
});
export const askCall = (callId: string): ToolCall => ({
  callId,
  name: "ask_owner",
  input: { question: `question of ${callId}`, options: ["yes", "no"] },
});

/** Every order of the items. */
export function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length <= 1) return [items];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

/** A repeatable sequence of whole numbers below a bound (mulberry32). */
export function seededNumbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * bound);
  };
}
