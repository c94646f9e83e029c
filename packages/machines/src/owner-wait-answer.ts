import type { AnswerSchema } from "./json-schema-subset.ts";
import { mismatchOf } from "./json-schema-subset.ts";

const MAX_ANSWER_JSON_CHARACTERS = 16_000;

/** What an answer has to fit. */
export interface Expected {
  readonly options?: readonly string[] | undefined;
  readonly answerSchema?: AnswerSchema | undefined;
}

/** Why a value does not answer the question, as a sentence; undefined when it does. */
export function mismatchOfAnswer(expected: Expected, value: unknown): string | undefined {
  const size = JSON.stringify(value)?.length ?? 0;
  if (size > MAX_ANSWER_JSON_CHARACTERS) {
    return `the answer has ${size} characters, at most ${MAX_ANSWER_JSON_CHARACTERS} expected`;
  }
  if (expected.options !== undefined && !expected.options.some((option) => option === value)) {
    return `the answer must be one of ${expected.options.map((option) => JSON.stringify(option)).join(", ")}`;
  }
  if (expected.answerSchema !== undefined) {
    return mismatchOf({ ...expected.answerSchema }, value, { allowUnknownKeys: false }, "answer");
  }
  if (typeof value !== "string") return `the answer must be text, found ${typeof value}`;
  return value.trim() === "" ? "the answer is blank" : undefined;
}
