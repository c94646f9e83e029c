import type { ErrorCode } from "@holdfast/protocol";
import type { AnswerSchema } from "./json-schema-subset.ts";
import { mismatchOf } from "./json-schema-subset.ts";

const MAX_ANSWER_JSON_CHARACTERS = 16_000;
/** Of a question that takes several people: all their answers stand in its record. */
const MAX_VOTE_JSON_CHARACTERS = 2000;

/** What an answer has to fit. */
export interface Expected {
  readonly options?: readonly string[] | undefined;
  readonly answerSchema?: AnswerSchema | undefined;
  readonly quorum?: number | undefined;
}

/** Why a value does not answer a question. */
export interface Mismatch {
  readonly code: ErrorCode;
  readonly why: "outOfRange" | "empty" | "mismatch";
  /** With the place in the value, where it has several. */
  readonly reason: string;
}

/** Why a value does not answer the question; undefined when it does. */
export function mismatchOfAnswer(expected: Expected, value: unknown): Mismatch | undefined {
  const size = JSON.stringify(value)?.length ?? 0;
  const most = (expected.quorum ?? 1) > 1 ? MAX_VOTE_JSON_CHARACTERS : MAX_ANSWER_JSON_CHARACTERS;
  if (size > most) return mismatch(`the answer has ${size} characters, at most ${most} expected`);
  if (expected.options !== undefined && !expected.options.some((option) => option === value)) {
    const choices = expected.options.map((option) => JSON.stringify(option)).join(", ");
    return { code: "HF-6005", why: "outOfRange", reason: `the answer must be one of ${choices}.` };
  }
  if (expected.answerSchema !== undefined) {
    const found = mismatchOf({ ...expected.answerSchema }, value, { allowUnknownKeys: false }, "answer");
    return found === undefined ? undefined : mismatch(found);
  }
  if (typeof value !== "string") return mismatch(`the answer must be text, found ${typeof value}`);
  return value.trim() === "" ? { code: "HF-6006", why: "empty", reason: "the answer is blank." } : undefined;
}

const mismatch = (reason: string): Mismatch => ({ code: "HF-6002", why: "mismatch", reason: `${reason}.` });
