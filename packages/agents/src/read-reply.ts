import type { ModelReply, ToolCall } from "@holdfast/protocol";
import {
  InvalidResponseDataError,
  JSONParseError,
  StreamProviderError,
  TypeValidationError,
  type TextStreamPart,
  type ToolSet,
} from "ai";
import { cutProblem, refusedProblem, tooLongProblem, unreadableProblem, type ModelProblem } from "./model-problem.ts";

type Part = TextStreamPart<ToolSet>;
type FinishPart = Extract<Part, { type: "finish" }>;

/** `ended`: the stream stopped without an answer and without saying why; the connection or a signal knows. */
export type ReplyOutcome =
  | { readonly kind: "reply"; readonly reply: ModelReply }
  | { readonly kind: "problem"; readonly problem: ModelProblem }
  | { readonly kind: "ended" };

export interface ReplyReading {
  readonly maxCharacters: number;
  /** Called with each piece of the answer's text. */
  readonly onText: (text: string) => void;
  /** Called whenever the model produced something, thought included. */
  readonly onToken: () => void;
}

/** Collects one answer of a model from the stream of the SDK. Rejects only with what a callback threw. */
export async function readReply(stream: AsyncIterable<Part>, reading: ReplyReading): Promise<ReplyOutcome> {
  const parts = stream[Symbol.asyncIterator]();
  const collector = new ReplyCollector(reading);
  for (;;) {
    const next = await tryNext(parts);
    if (next.kind === "thrown") return collector.failed(next.error);
    if (next.part === undefined) return { kind: "ended" };
    const outcome = collector.take(next.part);
    if (outcome !== undefined) return outcome;
  }
}

// A cut stream throws here instead of sending an error part.
async function tryNext(parts: AsyncIterator<Part>) {
  try {
    const { done, value } = await parts.next();
    return { kind: "next" as const, part: done === true ? undefined : value };
  } catch (error) {
    return { kind: "thrown" as const, error };
  }
}

class ReplyCollector {
  readonly #reading: ReplyReading;
  readonly #toolCalls: ToolCall[] = [];
  #text = "";
  #characters = 0;
  #hasBegun = false;

  constructor(reading: ReplyReading) {
    this.#reading = reading;
  }

  /** @returns the outcome when this part decides it */
  take(part: Part): ReplyOutcome | undefined {
    if (part.type === "text-delta") {
      this.#text += part.text;
      this.#reading.onText(part.text);
      return this.#grow(part.text.length);
    }
    if (part.type === "tool-input-delta") return this.#grow(part.delta.length);
    if (part.type === "reasoning-delta" || part.type === "tool-input-start") return this.#grow(0);
    if (part.type === "tool-call") {
      // `input` is a string when the arguments were no JSON.
      this.#toolCalls.push({ callId: part.toolCallId, name: part.toolName, input: part.input });
      return undefined;
    }
    if (part.type === "error") return this.failed(part.error);
    return part.type === "finish" ? this.#finish(part) : undefined;
  }

  failed(error: unknown): ReplyOutcome {
    if (StreamProviderError.isInstance(error)) {
      const { statusCode, type, code } = error;
      return problem(refusedProblem({ status: statusCode ?? 500, errorType: type, errorCode: code }));
    }
    if (JSONParseError.isInstance(error) || TypeValidationError.isInstance(error)) {
      return problem(unreadableProblem("sent an event that is no piece of an answer"));
    }
    if (InvalidResponseDataError.isInstance(error)) {
      return problem(this.#hasBegun ? cutProblem : unreadableProblem("ended its stream without an answer"));
    }
    if (error instanceof Error) return { kind: "ended" };
    return problem(refusedProblem({ status: 500 }));
  }

  #grow(characters: number): ReplyOutcome | undefined {
    this.#hasBegun = true;
    this.#reading.onToken();
    this.#characters += characters;
    const { maxCharacters } = this.#reading;
    if (this.#characters <= maxCharacters) return undefined;
    return problem(tooLongProblem(`answered more than ${maxCharacters} characters`));
  }

  #finish(part: FinishPart): ReplyOutcome {
    if (part.finishReason === "error") return { kind: "ended" };
    const { inputTokens = 0, outputTokens = 0 } = part.totalUsage;
    return {
      kind: "reply",
      reply: {
        text: this.#text,
        toolCalls: this.#toolCalls,
        finishReason: this.#finishReason(part.finishReason),
        usage: { inputTokens, outputTokens },
      },
    };
  }

  // Some endpoints say "stop" although they call tools.
  #finishReason(reason: FinishPart["finishReason"]): ModelReply["finishReason"] {
    if (reason === "length") return "length";
    if (reason === "content-filter") return "contentFilter";
    if (this.#toolCalls.length > 0) return "toolCalls";
    return reason === "stop" ? "stop" : "other";
  }
}

const problem = (problem: ModelProblem): ReplyOutcome => ({ kind: "problem", problem });
