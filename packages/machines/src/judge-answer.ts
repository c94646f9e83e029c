import { principalToken, type ErrorCode, type Principal } from "@holdfast/protocol";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitReply } from "./owner-wait-event.ts";
import { mismatchOfGiven } from "./owner-wait-answer.ts";
import { strangerTo } from "./owner-wait-authority.ts";

/** Why an event changed nothing, for its sender. */
export interface Refusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  /** For programs; `reason` is for people. */
  readonly why:
    | "closed"
    | "expired"
    | "notAllowed"
    | "outOfRange"
    | "empty"
    | "mismatch"
    | "busy"
    | "duplicate"
    | "limit";
  readonly reason: string;
}

export type AnswerVerdict = { readonly kind: "ok" } | { readonly kind: "duplicate" } | Refusal;

/**
 * Whether a reply counts. The machine's guard asks it, and so does whoever tells the sender what became of it.
 *
 * Looked at in this order: whether a person or service sends it, whether the question is open, whether they may, whether it fits. That a
 * question is closed stands in every list: it tells a stranger nothing new.
 *
 * `duplicate`: this very reply (by `answerId`) counts already; for its sender that is a success.
 *
 * @param principal  who sends it, as the shell knows it from the subject; undefined is nobody
 */
export function judgeAnswer(
  context: OwnerWaitContext,
  event: OwnerWaitReply,
  principal: Principal | undefined,
): AnswerVerdict {
  const sender = senderOf(principal);
  if (sender.kind === "refused") return sender;
  const token = principalToken(sender);
  if (isGiven(context, event.answerId, token)) return { kind: "duplicate" };
  if (context.status !== "open") return closed(context);
  const stranger = strangerTo(context, sender);
  if (stranger !== undefined) return refuse("HF-6003", "notAllowed", stranger);
  if (context.revoked?.includes(`${token} ${event.answerId}`) === true) {
    return refuse("HF-6001", "closed", `Answer ${event.answerId} was revoked. Give another one under another id.`);
  }
  if (context.votes?.some((vote) => vote.principal === token) === true) {
    return refuse("HF-6001", "closed", `An answer of ${token} counts already. Revoke it first.`);
  }
  if (event.type === "decline") return { kind: "ok" };
  const mismatch = mismatchOfGiven(context, event);
  return mismatch === undefined ? { kind: "ok" } : { kind: "refused", ...mismatch };
}

/** Whether this very reply counts. */
export function isGiven(context: OwnerWaitContext, answerId: string, token: string): boolean {
  if (context.votes?.some((vote) => vote.answerId === answerId && vote.principal === token) === true) return true;
  return context.answerId === answerId && context.principal === token;
}

/** A person or a service; everybody else is refused. */
export function senderOf(principal: Principal | undefined): Principal | Refusal {
  if (principal === undefined) return refuse("HF-6003", "notAllowed", "It is not known who sends this.");
  // An agent that may approve its own request makes every approval worthless.
  return principal.kind === "agent" ? refuse("HF-6003", "notAllowed", "An agent may not act for a person.") : principal;
}

/** Refusal of what comes too late: with the state that the question is really in. */
export function closed({ waitId, status, outcome }: OwnerWaitContext): Refusal {
  if ((outcome ?? status) === "expired") return refuse("HF-6004", "expired", `Question ${waitId} has expired.`);
  const ended = status === "consumed" && outcome !== undefined ? `${outcome}, and the answer is consumed` : status;
  return refuse("HF-6001", "closed", `Question ${waitId} is ${ended}; the first answer counts.`);
}

export function refuse(code: ErrorCode, why: Refusal["why"], reason: string): Refusal {
  return { kind: "refused", code, why, reason };
}
