import { principalToken, type Principal } from "@holdfast/protocol";
import { closed, isGiven, judgeAnswer, refuse, senderOf, type AnswerVerdict } from "./judge-answer.ts";
import { isExclusive, isOperator, strangerTo } from "./owner-wait-authority.ts";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitEvent } from "./owner-wait-event.ts";

/** Revocations of one question; further ones are refused. */
const MAX_REVOCATIONS = 32;

/**
 * Whether somebody may take a reply of their own back: as long as whoever asked has not begun to take it in.
 *
 * `duplicate`: it was taken back before.
 */
export function judgeRevoke(
  context: OwnerWaitContext,
  event: Extract<OwnerWaitEvent, { type: "revoke" }>,
): AnswerVerdict {
  const sender = senderOf(event.principal);
  if (sender.kind === "refused") return sender;
  const token = principalToken(sender);
  if (context.revoked?.includes(`${token} ${event.answerId}`) === true) return { kind: "duplicate" };
  const isTakeable = context.status === "open" || context.status === "answered" || context.status === "declined";
  if (!isTakeable) return closed(context);
  if (!isGiven(context, event.answerId, token)) {
    return refuse("HF-6003", "notAllowed", `No answer ${event.answerId} of ${token} counts for ${context.waitId}.`);
  }
  if (context.isOffered === true || context.votes === undefined) {
    return refuse("HF-6001", "closed", `Question ${context.waitId} is ${context.status}, and the answer is taken in.`);
  }
  return (context.revoked?.length ?? 0) < MAX_REVOCATIONS
    ? { kind: "ok" }
    : refuse("HF-5202", "limit", `${MAX_REVOCATIONS} answers to ${context.waitId} were revoked; the last one stands.`);
}

/** Whether a question may be withdrawn: by the one who asked (`principal` undefined), by whoever may answer it, or by an operator. */
export function judgeCancel(context: OwnerWaitContext, principal: Principal | undefined): AnswerVerdict {
  if (principal === undefined) return { kind: "ok" };
  const sender = senderOf(principal);
  if (sender.kind === "refused") return sender;
  if (context.status !== "open") return closed(context);
  const stranger = isOperator(sender) ? undefined : strangerTo(context, sender);
  return stranger === undefined ? { kind: "ok" } : refuse("HF-6003", "notAllowed", stranger);
}

/**
 * Whether a question may be handed to somebody else: by whoever may answer it, or by an operator. Of several approvers each may hand on what
 * is asked of them.
 *
 * `duplicate`: it is asked of that one already.
 */
export function judgeReassign(
  context: OwnerWaitContext,
  event: Extract<OwnerWaitEvent, { type: "reassign" }>,
): AnswerVerdict {
  const sender = senderOf(event.principal);
  if (sender.kind === "refused") return sender;
  if (context.status !== "open") return closed(context);
  const stranger = isOperator(sender) ? undefined : strangerTo(context, sender);
  if (stranger !== undefined) return refuse("HF-6003", "notAllowed", stranger);
  const { to } = event;
  if (context.approvers !== undefined) return judgeDelegation(context, context.approvers, event, sender);
  if ("role" in to) return context.role === to.role ? { kind: "duplicate" } : { kind: "ok" };
  if (context.role === undefined && context.assignee === to.assignee) return { kind: "duplicate" };
  return (context.quorum ?? 1) > 1 && isExclusive(to.assignee)
    ? refuse("HF-6002", "mismatch", `It takes ${context.quorum} people, and ${to.assignee} is one.`)
    : { kind: "ok" };
}

function judgeDelegation(
  { votes = [] }: OwnerWaitContext,
  approvers: readonly string[],
  { to, from }: Extract<OwnerWaitEvent, { type: "reassign" }>,
  sender: Principal,
): AnswerVerdict {
  const own = principalToken(sender);
  const former = from ?? own;
  if (former !== own && !isOperator(sender)) {
    return refuse("HF-6003", "notAllowed", `Only ${former} or an operator may hand on what ${former} is asked.`);
  }
  if (!("assignee" in to) || !isExclusive(to.assignee)) {
    return refuse("HF-6002", "mismatch", "One of several approvers is followed by a person or a service.");
  }
  if (!approvers.includes(former)) {
    return approvers.includes(to.assignee)
      ? { kind: "duplicate" }
      : refuse("HF-6003", "notAllowed", `${former} is not asked. Name one of ${approvers.join(", ")} with from.`);
  }
  if (approvers.includes(to.assignee)) return refuse("HF-6002", "mismatch", `${to.assignee} is asked already.`);
  return votes.some(({ principal }) => principal === former)
    ? refuse("HF-6001", "closed", `An answer of ${former} counts already. Revoke it first.`)
    : { kind: "ok" };
}

/** The verdict on an event from outside. */
export function judgeWaitEvent(context: OwnerWaitContext, event: OwnerWaitEvent): AnswerVerdict {
  switch (event.type) {
    case "answer":
    case "decline":
      return judgeAnswer(context, event, event.principal);
    case "revoke":
      return judgeRevoke(context, event);
    case "cancel":
      return judgeCancel(context, event.principal);
    case "reassign":
      return judgeReassign(context, event);
  }
}
