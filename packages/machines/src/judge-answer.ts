import { principalToken, type ErrorCode, type Principal } from "@holdfast/protocol";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitReply } from "./owner-wait-event.ts";
import { mismatchOfAnswer } from "./owner-wait-answer.ts";

/** Why an event changed nothing, for its sender. */
export interface Refusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  /** For programs; `reason` is for people. */
  readonly why: "closed" | "notAllowed" | "mismatch" | "busy" | "duplicate";
  readonly reason: string;
}

export type AnswerVerdict = { readonly kind: "ok" } | { readonly kind: "duplicate" } | Refusal;

/**
 * Whether a reply settles a question. The machine's guard asks it, and so does whoever tells the sender what became of it.
 *
 * `duplicate`: this very reply (by `answerId`) already settled it; for its sender that is a success.
 *
 * @param principal  who sends it, as the shell knows it from the subject; undefined is nobody
 */
export function judgeAnswer(
  context: OwnerWaitContext,
  event: OwnerWaitReply,
  principal: Principal | undefined,
): AnswerVerdict {
  if (principal === undefined) return refuse("HF-6002", "notAllowed", "It is not known who answers.");
  // An agent that may approve its own request makes every approval worthless.
  if (principal.kind === "agent") return refuse("HF-6002", "notAllowed", "An agent may not answer for a person.");
  const token = principalToken(principal);
  if (/^(person|service)-/.test(context.assignee) && context.assignee !== token) {
    return refuse("HF-6002", "notAllowed", `Only ${context.assignee} may answer, not ${token}.`);
  }
  if (context.status !== "open") {
    const isSame = context.answerId === event.answerId && context.principal === token;
    return isSame
      ? { kind: "duplicate" }
      : refuse("HF-6001", "closed", `Question ${context.waitId} is ${context.status}; the first answer counts.`);
  }
  if (event.type === "decline") return { kind: "ok" };
  const mismatch = mismatchOfAnswer(context, event.value);
  return mismatch === undefined ? { kind: "ok" } : refuse("HF-6002", "mismatch", `${mismatch}.`);
}

function refuse(code: ErrorCode, why: Refusal["why"], reason: string): Refusal {
  return { kind: "refused", code, why, reason };
}
