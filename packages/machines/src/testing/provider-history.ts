import type { TranscriptMessage } from "@holdfast/protocol";

/**
 * First reason why a provider would refuse these messages as the history of a model call; undefined when it would not.
 * As strict as the strictest: every call answered by the next message, in order, names within the alphabet.
 */
export function problemOfHistory(messages: readonly TranscriptMessage[]): string | undefined {
  if (messages[0]?.role !== "user") return "a history begins with a user message";
  for (const [index, message] of messages.entries()) {
    const next = messages[index + 1];
    const problem = message.role === "assistant" ? problemOfAssistant(message, next) : undefined;
    if (problem !== undefined) return `message ${index}: ${problem}`;
    if (message.role === "tool" && messages[index - 1]?.role !== "assistant")
      return `message ${index}: answers nothing`;
  }
  return messages.at(-1)?.role === "assistant" ? "the last message is the model's own" : undefined;
}

function problemOfAssistant(
  message: Extract<TranscriptMessage, { role: "assistant" }>,
  next: TranscriptMessage | undefined,
): string | undefined {
  const called = message.toolCalls.map((call) => call.callId);
  if (message.text === "" && called.length === 0) return "is empty";
  if (new Set(called).size < called.length) return "two calls share an id";
  const bad = message.toolCalls.find((call) => !/^[A-Za-z0-9_-]{1,64}$/.test(call.name));
  if (bad !== undefined) return `the name ${bad.name} is not valid`;
  if (called.some((id) => !/^[A-Za-z0-9_-]{1,64}$/.test(id))) return "an id is not valid";
  if (message.toolCalls.some((call) => typeof call.input !== "object" || call.input === null))
    return "an input is no object";
  const answered = next?.role === "tool" ? next.results.map((result) => result.callId) : [];
  if (answered.join(" ") === called.join(" ")) return undefined;
  return `called ${called.join(", ") || "nothing"}, answered ${answered.join(", ") || "nothing"}`;
}

/** Path of the first value that is not plain data; undefined when everything is. */
export function pathOfImpure(value: unknown, path = "context"): string | undefined {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return undefined;
  if (typeof value !== "object") return `${path} is ${typeof value}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null)
    return `${path} has a class`;
  for (const [key, item] of Object.entries(value)) {
    const found = pathOfImpure(item, `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
