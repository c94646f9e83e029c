import { principalToken } from "@holdfast/protocol";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitMachineEvent, OwnerWaitReply } from "./owner-wait-event.ts";
import { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";
import { standingOf, type Vote } from "./owner-wait-quorum.ts";

type Changes = Partial<OwnerWaitContext>;

/**
 * Context of a question that was just asked.
 *
 * @param actorId  id of the actor; the id of the wait unless the input names one
 * @throws ZodError when the input does not fit; for the machine that is status `error`, its parent is told
 */
export function initialWait(input: unknown, actorId: string): OwnerWaitContext {
  const { waitId = actorId, ...question } = OwnerWaitInput.parse(input);
  // The role is whom lists show, unless somebody is named besides.
  const assignee = question.assignee === "owner" ? (question.role ?? "owner") : question.assignee;
  return { ...question, assignee, waitId, status: "open" };
}

/** A reply of a person counts; it may settle the question. */
export function withReply(context: OwnerWaitContext, event: OwnerWaitReply): Changes {
  if (event.principal === undefined) return {};
  const principal = principalToken(event.principal);
  const votes = [...(context.votes ?? []), voteOf(context, event, principal)];
  const standing = standingOf(context, votes);
  if (standing.kind === "open") return { votes };
  const { vote } = standing;
  const decided = {
    votes,
    status: standing.kind,
    outcome: standing.kind,
    answerId: vote.answerId,
    principal: vote.principal,
    by: "owner",
    ...(context.revocableForMs !== undefined && { isRevocable: true }),
  } as const;
  if (standing.kind === "answered") {
    const { approvals } = standing;
    return {
      ...decided,
      answer: vote.value,
      ...(vote.action !== undefined && { action: vote.action }),
      ...((context.quorum ?? 1) > 1 && { approvals: [...approvals] }),
    };
  }
  return { ...decided, ...(standing.reason !== undefined && { endReason: standing.reason }) };
}

function voteOf(context: OwnerWaitContext, event: OwnerWaitReply, principal: string): Vote {
  const { answerId, reason } = event;
  const action = event.type === "decline" ? "reject" : (event.action ?? "respond");
  const base = {
    answerId,
    principal,
    ...(context.actions !== undefined && { action }),
    ...(reason !== undefined && { reason }),
  };
  if (event.type === "decline" || action === "reject") return base;
  return { ...base, value: action === "accept" ? true : event.value };
}

/** A reply is taken back: the question is open again, with the replies of the others. */
export function withRevocation(context: OwnerWaitContext, event: OwnerWaitMachineEvent): Changes {
  if (event.type !== "revoke" || event.principal === undefined) return {};
  const token = principalToken(event.principal);
  const isRevoked = ({ answerId, principal }: Vote) => answerId === event.answerId && principal === token;
  return {
    votes: context.votes?.filter((vote) => !isRevoked(vote)) ?? [],
    revoked: [...(context.revoked ?? []), `${token} ${event.answerId}`],
    status: "open",
    outcome: undefined,
    answerId: undefined,
    answer: undefined,
    action: undefined,
    by: undefined,
    principal: undefined,
    approvals: undefined,
    endReason: undefined,
    isRevocable: undefined,
  };
}

/** Somebody else is asked. */
export function withReassignment(context: OwnerWaitContext, event: OwnerWaitMachineEvent): Changes {
  if (event.type !== "reassign") return {};
  const { to, from, principal } = event;
  const former = from ?? (principal && principalToken(principal));
  if (context.approvers !== undefined && "assignee" in to) {
    return { reminders: 0, approvers: context.approvers.map((one) => (one === former ? to.assignee : one)) };
  }
  return askedOf(to);
}

const askedOf = (to: { readonly assignee: string } | { readonly role: string }): Changes =>
  "role" in to
    ? { reminders: 0, role: to.role, assignee: to.role }
    : { reminders: 0, role: undefined, assignee: to.assignee };

/** The next of those who are asked when nobody replies in time; undefined when there is none. */
export const nextStep = ({ onExpiry, escalation, escalated = 0 }: OwnerWaitContext) =>
  onExpiry === "escalate" ? escalation?.[escalated] : undefined;

/** The next one is asked, with a time of their own. */
export function withEscalation(context: OwnerWaitContext): Changes {
  const step = nextStep(context);
  if (step === undefined) return {};
  const escalated = (context.escalated ?? 0) + 1;
  return { ...askedOf(step), escalated, expiresInMs: step.expiresInMs, isOverdue: undefined };
}

/** Nobody replied in time. Only a question that says so takes its default. */
export function withExpiry(context: OwnerWaitContext): Changes {
  const expired = { status: "expired", outcome: "expired" } as const;
  const allowed = context.onExpiry === "escalate" ? context.onEscalated : context.onExpiry;
  if (allowed === "default" && context.default !== undefined) {
    return { ...expired, answer: context.default, by: "default" };
  }
  return { ...expired, endReason: "Nobody answered in time." };
}

/** The question is withdrawn. */
export const withCancel = (event: OwnerWaitMachineEvent): Changes => ({
  status: "cancelled",
  outcome: "cancelled",
  endReason: event.type === "cancel" && event.reason !== undefined ? event.reason : "no reason was given",
});

/** How a wait that is settled was settled. */
export function waitOutputOf(context: OwnerWaitContext): OwnerWaitOutput {
  const { waitId, status, answer, by, action, principal, approvals, endReason } = context;
  // A question that is open has no output.
  const settled = status === "open" || status === "consumed" ? "cancelled" : status;
  return {
    waitId,
    status: context.outcome ?? settled,
    ...(answer === undefined ? {} : { answer }),
    ...(by === undefined ? {} : { by }),
    ...(action === undefined ? {} : { action }),
    ...(principal === undefined ? {} : { principal }),
    ...(approvals === undefined ? {} : { approvals }),
    ...(endReason === undefined ? {} : { reason: endReason }),
  };
}
