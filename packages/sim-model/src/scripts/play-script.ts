import type { ChatMessage } from "../chat-request.ts";
import type { Script, ScriptToolCall } from "../script.ts";

const MAX_STEPS = 20;

/** A chat played to its answer: `steps` holds the tool calls of each step that made some. */
export type PlayedChat = {
  readonly messages: readonly ChatMessage[];
  readonly steps: readonly (readonly ScriptToolCall[])[];
  readonly answer: string;
};

/**
 * Test builder: plays a script against tools until it answers with text.
 *
 * @param answerTool  the text of a tool's result
 * @throws Error when the script still calls tools after 20 steps
 */
export function playScript(
  script: Script,
  opening: readonly ChatMessage[],
  answerTool: (call: ScriptToolCall) => string,
): PlayedChat {
  const messages: ChatMessage[] = [...opening];
  const steps: (readonly ScriptToolCall[])[] = [];
  while (steps.length < MAX_STEPS) {
    const step = script({ messages, tools: [], attempt: 1 });
    const calls = step.toolCalls ?? [];
    const toolCalls = calls.map((call, index) => ({
      id: `call_${messages.length}_${index}`,
      name: call.name,
      arguments: JSON.stringify(call.arguments),
    }));
    messages.push({ role: "assistant", text: step.text ?? "", toolCalls });
    if (calls.length === 0) return { messages, steps, answer: step.text ?? "" };
    steps.push(calls);
    for (const [index, call] of calls.entries()) {
      const callId = toolCalls[index]?.id ?? "";
      messages.push({ role: "tool", callId, text: answerTool(call) });
    }
  }
  throw new Error(`the script still calls tools after ${MAX_STEPS} steps`);
}

/** Test builder: a user message. */
export function user(text: string): ChatMessage {
  return { role: "user", text };
}
