import type { Completion } from "./completion.ts";

const ARGUMENT_CHUNK_CHARACTERS = 16;

/** The event that ends every complete stream. */
export const STREAM_END = "data: [DONE]\n\n";

/**
 * The events of a streamed answer, in order and without {@link STREAM_END}.
 *
 * First the role, then the text word by word, then each tool call (name and id first, arguments in
 * pieces), then the finish reason, then the usage if it was asked for: then every other event says
 * `usage: null`, and the last one has no choices.
 */
export function* streamEvents(completion: Completion, includeUsage: boolean): Generator<string> {
  const event = (choices: readonly object[], usage: object | null): string =>
    `data: ${JSON.stringify({
      id: completion.id,
      object: "chat.completion.chunk",
      created: completion.created,
      model: completion.model,
      choices,
      ...(includeUsage ? { usage } : {}),
    })}\n\n`;
  const delta = (change: object): string =>
    event([{ index: 0, delta: change, logprobs: null, finish_reason: null }], null);

  yield delta({ role: "assistant", content: completion.toolCalls.length > 0 ? null : "" });
  for (const word of completion.text.match(/\s*\S+\s?|\s+/gu) ?? []) {
    yield delta({ content: word });
  }
  for (const [index, call] of completion.toolCalls.entries()) {
    const { name, arguments: text } = call.function;
    yield delta({
      tool_calls: [{ index, id: call.id, type: "function", function: { name, arguments: "" } }],
    });
    for (let from = 0; from < text.length; from += ARGUMENT_CHUNK_CHARACTERS) {
      const piece = text.slice(from, from + ARGUMENT_CHUNK_CHARACTERS);
      yield delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  const { finishReason } = completion;
  yield event([{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason }], null);
  if (includeUsage) yield event([], completion.usage);
}
