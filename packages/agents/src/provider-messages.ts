import type { ToolCall, ToolResult, TranscriptMessage } from "@holdfast/protocol";
import type { ModelMessage } from "ai";

const LOST_RESULT = "No result of this call is known.";

/**
 * A transcript in the order every provider takes: directly after the calls of an answer, one result for each, in call order.
 *
 * A message that arrived while calls were open comes after their results. A result nobody asked for, or a second one, is
 * left out; a call without a result gets one that says so; an answer without text and calls is left out.
 */
export function toProviderMessages(transcript: readonly TranscriptMessage[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  let open = new Map<string, { readonly call: ToolCall; result?: ToolResult }>();
  let waiting: ModelMessage[] = [];

  const closeCalls = (): void => {
    if (open.size > 0) messages.push(toolMessage([...open.values()]));
    messages.push(...waiting);
    open = new Map();
    waiting = [];
  };

  for (const message of transcript) {
    switch (message.role) {
      case "user":
        (open.size > 0 ? waiting : messages).push({ role: "user", content: message.text });
        break;
      case "assistant":
        closeCalls();
        if (message.text !== "" || message.toolCalls.length > 0) messages.push(assistantMessage(message));
        open = new Map(message.toolCalls.map((call) => [call.callId, { call }]));
        break;
      case "tool":
        for (const result of message.results) {
          const entry = open.get(result.callId);
          if (entry !== undefined) entry.result ??= result;
        }
        if ([...open.values()].every((entry) => entry.result !== undefined)) closeCalls();
        break;
    }
  }
  closeCalls();
  return messages;
}

function assistantMessage(message: Extract<TranscriptMessage, { role: "assistant" }>): ModelMessage {
  return {
    role: "assistant",
    content: [
      ...(message.text === "" ? [] : [{ type: "text" as const, text: message.text }]),
      ...message.toolCalls.map((call) => ({
        type: "tool-call" as const,
        toolCallId: call.callId,
        toolName: toProviderName(call.name),
        // Providers take an object back and nothing else; what was wrong with the arguments stands in the result.
        input: typeof call.input === "object" && call.input !== null && !Array.isArray(call.input) ? call.input : {},
      })),
    ],
  };
}

function toolMessage(entries: readonly { readonly call: ToolCall; readonly result?: ToolResult }[]): ModelMessage {
  return {
    role: "tool",
    content: entries.map(({ call, result }) => ({
      type: "tool-result" as const,
      toolCallId: call.callId,
      toolName: toProviderName(call.name),
      output: {
        type: result?.ok === true ? ("text" as const) : ("error-text" as const),
        value: result?.content ?? LOST_RESULT,
      },
    })),
  };
}

// A name a model made up may hold anything; one that a provider refuses would make the conversation unusable for ever.
const toProviderName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
