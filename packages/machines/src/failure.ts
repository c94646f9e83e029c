import { FailureCause, isErrorCode, type ErrorCode } from "@holdfast/protocol";
import { z } from "zod";
import { boundedText } from "./bounded-text.ts";

const MAX_MESSAGE_CHARACTERS = 2000;

/** Why something did not succeed: `cause` for programs, `code` for the catalogue, `message` for people. */
export const Failure = z.object({ cause: FailureCause, code: z.string(), message: z.string() });
export type Failure = Readonly<z.infer<typeof Failure>>;

// An error arrives as an Error, as its stored form, or as whatever a job threw.
const ErrorLike = z.looseObject({ message: z.string(), code: z.unknown().optional() });

const CAUSE_OF_CODE: Partial<Readonly<Record<ErrorCode, FailureCause>>> = {
  "HF-3010": "nodeDeath",
  "HF-5202": "limit",
  "HF-5203": "cancel",
  "HF-5204": "timeout",
  "HF-5301": "limit",
  "HF-5303": "limit",
  "HF-5304": "limit",
};

/**
 * The failure that an error of a job or a child stands for.
 *
 * @param fallback  cause and code of errors that have no code of the catalogue
 */
export function failureOf(
  error: unknown,
  fallback: { readonly cause: FailureCause; readonly code: ErrorCode },
): Failure {
  const parsed = ErrorLike.safeParse(error);
  const found = parsed.success ? parsed.data.message : typeof error === "string" ? error : "";
  const message = boundedText(found || "No reason was given.", MAX_MESSAGE_CHARACTERS);
  const code = parsed.success && typeof parsed.data.code === "string" ? parsed.data.code : undefined;
  if (code === undefined || !isErrorCode(code)) return { ...fallback, message };
  return { cause: CAUSE_OF_CODE[code] ?? fallback.cause, code, message };
}
