import type { ChatMessage } from "./chat-request.ts";

/** A tool call made in a turn, with the text of its result. */
export type AnsweredCall = {
  readonly name: string;
  /** The arguments as JSON text, as the model once wrote them. */
  readonly arguments: string;
  readonly result: string;
};

/** What happened after a user message. */
export type Turn = {
  /** Tool calls in the order they were made, all answered (the request parser saw to that). */
  readonly calls: readonly AnsweredCall[];
  /** True once the model gave an answer that asks for no tool. */
  readonly isAnswered: boolean;
};

/** Text of the last user message; empty when there is none. */
export function lastUserText(messages: readonly ChatMessage[]): string {
  return messages.findLast((message) => message.role === "user")?.text ?? "";
}

/** The turn opened by `messages[start]`, up to the end of the chat. */
export function turnFrom(messages: readonly ChatMessage[], start: number): Turn {
  const after = messages.slice(start + 1);
  const results = new Map(
    after.flatMap((message) => (message.role === "tool" ? [[message.callId, message.text] as const] : [])),
  );
  const calls = after.flatMap((message) => (message.role === "assistant" ? message.toolCalls : []));
  return {
    calls: calls.map((call) => ({
      name: call.name,
      arguments: call.arguments,
      result: results.get(call.id) ?? "",
    })),
    isAnswered: after.some((message) => message.role === "assistant" && message.toolCalls.length === 0),
  };
}
