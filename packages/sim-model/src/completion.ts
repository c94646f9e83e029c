import type { ChatMessage } from "./chat-request.ts";
import type { ScriptStep } from "./script.ts";

/** Token counts of one answer, in the wire's own names. */
type Usage = {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
};

/** One tool call as it goes over the wire; `arguments` is JSON text. */
type WireToolCall = {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
};

/** A whole answer, not yet cut into a wire format. */
export type Completion = {
  readonly id: string;
  /** Unix time in seconds, as the wire has it. */
  readonly created: number;
  readonly model: string;
  readonly text: string;
  readonly toolCalls: readonly WireToolCall[];
  readonly finishReason: "stop" | "tool_calls";
  readonly usage: Usage;
};

/** What a completion is made of besides the script's step. */
export type CompletionSource = {
  /** Unique per request: two answers to the same prompt never share a tool call id. */
  readonly id: string;
  readonly nowMs: number;
  readonly model: string;
  readonly messages: readonly ChatMessage[];
};

/** Builds the answer of one step. */
export function completionOf(step: ScriptStep, source: CompletionSource): Completion {
  const text = step.text ?? "";
  const toolCalls = (step.toolCalls ?? []).map((call, index): WireToolCall => ({
    id: `call_${source.id}_${index}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }));
  const promptTokens = countTokens(JSON.stringify(source.messages));
  const completionTokens =
    countTokens(text) + toolCalls.reduce((sum, call) => sum + countTokens(JSON.stringify(call.function)), 0);
  return {
    id: `chatcmpl-${source.id}`,
    created: Math.floor(source.nowMs / 1000),
    model: source.model,
    text,
    toolCalls,
    finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

/** The JSON body of an answer that is not streamed. */
export function wholeBody(completion: Completion): object {
  return {
    id: completion.id,
    object: "chat.completion",
    created: completion.created,
    model: completion.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: completion.text === "" && completion.toolCalls.length > 0 ? null : completion.text,
          ...(completion.toolCalls.length > 0 ? { tool_calls: completion.toolCalls } : {}),
        },
        logprobs: null,
        finish_reason: completion.finishReason,
      },
    ],
    usage: completion.usage,
  };
}

// A rule of thumb, not a tokeniser: four characters to a token.
function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
