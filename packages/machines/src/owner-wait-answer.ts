import type { ErrorCode } from "@holdfast/protocol";
import type { AnswerSchema } from "./json-schema-subset.ts";
import { isPlainObject, mismatchOf } from "./json-schema-subset.ts";

type Action = "accept" | "edit" | "respond" | "reject";

const MAX_ANSWER_JSON_CHARACTERS = 16_000;
/** Of a question that takes several people: all their answers stand in its record. */
const MAX_VOTE_JSON_CHARACTERS = 2000;

/** What an answer has to fit. */
export interface Expected {
  readonly options?: readonly string[] | undefined;
  readonly answerSchema?: AnswerSchema | undefined;
  readonly quorum?: number | undefined;
  readonly actions?: readonly Action[] | undefined;
}

/** An answer as somebody gives it. */
export interface Given {
  readonly action?: Action | undefined;
  readonly value?: unknown;
}

/** Why a value does not answer a question. */
export interface Mismatch {
  readonly code: ErrorCode;
  readonly why: "outOfRange" | "empty" | "mismatch";
  /** With the place in the value, where it has several. */
  readonly reason: string;
}

/** Why somebody may not answer like this; undefined when they may. */
export function mismatchOfGiven(expected: Expected, { action, value }: Given): Mismatch | undefined {
  const { actions = ["respond", "reject"] } = expected;
  const done = action ?? "respond";
  if (!actions.includes(done)) {
    return { code: "HF-6005", why: "outOfRange", reason: `the action must be one of ${actions.join(", ")}.` };
  }
  if (done === "accept" || done === "reject") {
    return value === undefined ? undefined : mismatch(`${done} takes no value`);
  }
  if (value === undefined) return { code: "HF-6006", why: "empty", reason: `${done} needs a value.` };
  const isEditable = actions.includes("edit");
  // Where arguments may be edited the schema is theirs, and words are words.
  if (done === "respond")
    return mismatchOfAnswer(isEditable ? { ...expected, answerSchema: undefined } : expected, value);
  if (!isPlainObject(value)) return mismatch("answer must be an object: all arguments, as they are to be");
  return mismatchOfAnswer({ ...expected, options: undefined, answerSchema: expected.answerSchema ?? {} }, value);
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
