import { RuntimeFault } from "@holdfast/protocol";
import { knownReason } from "./known-reason.ts";

/** What a model call can die of. Never quotes a request, an answer or a key: endpoints echo all three. */
export class ModelFault extends RuntimeFault {
  /** The last try is proved to have cost nothing. Never travels: only whoever pays for the call asks. */
  isUncharged = false;
}

/** Where a call went, as far as it may be told. */
export interface ModelTarget {
  /** Host and port. */
  readonly endpoint: string;
  readonly model: string;
}

/** One failed try, in our own words. */
export interface ModelProblem {
  readonly code: "HF-5001" | "HF-5002" | "HF-5003" | "HF-5004" | "HF-5005" | "HF-5006";
  readonly what: string;
  readonly remedy: string;
  /** `once`: repeated a single time, however many tries are left. */
  readonly retry: "backoff" | "once" | "never";
  /** What the endpoint asked for. */
  readonly retryAfterMs?: number | undefined;
  /** HTTP status. */
  readonly status?: number | undefined;
  /** One of a fixed list of words. */
  readonly reason?: string | undefined;
  /** No answer was begun, and this says so: nothing can have been charged. */
  readonly isUncharged?: boolean;
}

/** A proxy that gave up says nothing of the endpoint behind it, which may have answered. */
const GAVE_UP = new Set([408, 499, 504, 524]);

/** A status instead of an answer: it was refused before anything was generated, unless somebody in between gave up. */
export const isRefusedUncharged = (status: number): boolean => !GAVE_UP.has(status);

const NEVER_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** The fault of a call that ended with `problem`. It has no cause: those of the SDK hold the request. */
export function modelFault(problem: ModelProblem, target: ModelTarget, tries: number): ModelFault {
  const after = tries === 1 ? "" : ` (after ${tries} tries)`;
  const { status, reason } = problem;
  const fault = new ModelFault(
    problem.code,
    `Model ${target.model} at ${target.endpoint}: ${problem.what}${after}. ${problem.remedy}`,
    {
      facts: {
        ...target,
        tries,
        retryable: problem.retry !== "never",
        ...(status === undefined ? {} : { status }),
        ...(reason === undefined ? {} : { reason }),
      },
    },
  );
  fault.isUncharged = problem.isUncharged === true;
  return fault;
}

/** The caller gave up; nothing is wrong with the endpoint. */
export function cancelledCall(target: ModelTarget): ModelFault {
  return new ModelFault(
    "HF-5203",
    `Model ${target.model} at ${target.endpoint}: the call was cancelled by its caller.`,
    {
      facts: { ...target },
    },
  );
}

/** A try that got a status instead of an answer, or an error in the middle of one. */
export function refusedProblem(answer: {
  readonly status: number;
  readonly errorType?: unknown;
  readonly errorCode?: unknown;
  readonly retryAfterMs?: number | undefined;
}): ModelProblem {
  const { status, retryAfterMs } = answer;
  const reason = knownReason(answer.errorCode) ?? knownReason(answer.errorType);
  const what = `answered status ${status}${reason === undefined ? "" : ` (${reason})`}`;
  const facts = { status, reason, what, retryAfterMs };
  if (status === 401 || status === 403 || status === 407) {
    return { ...facts, code: "HF-5001", retry: "never", remedy: "Check the key and what it may use." };
  }
  if (status === 429) {
    const isSpent = reason === "insufficient_quota" || reason === "billing_hard_limit_reached";
    return isSpent
      ? { ...facts, code: "HF-5002", retry: "never", remedy: "The account has no quota left; raise it or use another." }
      : { ...facts, code: "HF-5002", retry: "backoff", remedy: "Try again later, or send less at a time." };
  }
  const isPassing = status >= 500 || status === 408 || status === 409 || status === 425;
  if (isPassing) return { ...facts, code: "HF-5003", retry: "backoff", remedy: "Try again; look at the endpoint." };
  return { ...facts, code: "HF-5003", retry: "never", remedy: remedyFor(status, reason) };
}

function remedyFor(status: number, reason: string | undefined): string {
  if (reason === "context_length_exceeded") return "The conversation is longer than the model can read.";
  if (status < 400) return "It redirects; set the base URL to where it leads.";
  if (status === 402) return "The account has to be paid for.";
  if (status === 404) return "Check the base URL (it usually ends in /v1) and the name of the model.";
  return "It does not take this request: check the model, its tools and its limits.";
}

/** No connection, or one that broke before the answer began. */
export const unreachableProblem = (systemCode: string | undefined): ModelProblem => ({
  code: "HF-5003",
  what: `cannot be reached${systemCode === undefined ? "" : ` (${systemCode})`}`,
  remedy: "Check the base URL and that the endpoint runs.",
  retry: "backoff",
  reason: systemCode,
  isUncharged: NEVER_CONNECTED.has(systemCode ?? ""),
});

export const unreadableProblem = (what: string): ModelProblem => ({
  code: "HF-5004",
  what,
  remedy: "Check that the base URL leads to an OpenAI-compatible endpoint.",
  retry: "once",
});

export const tooLongProblem = (what: string): ModelProblem => ({
  code: "HF-5004",
  what,
  remedy: "Ask for less, or set a limit of output tokens.",
  retry: "never",
});

export const cutProblem: ModelProblem = {
  code: "HF-5006",
  what: "cut its answer off before the end",
  remedy: "Try again; look for a proxy that ends long answers.",
  retry: "backoff",
};
