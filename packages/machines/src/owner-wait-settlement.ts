import { principalToken } from "@holdfast/protocol";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitEvent } from "./owner-wait-event.ts";
import { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";

type Changes = Partial<OwnerWaitContext>;

/**
 * Context of a question that was just asked.
 *
 * @param actorId  id of the actor; the id of the wait unless the input names one
 * @throws ZodError when the input does not fit; for the machine that is status `error`, its parent is told
 */
export function initialWait(input: unknown, actorId: string): OwnerWaitContext {
  const { waitId = actorId, ...question } = OwnerWaitInput.parse(input);
  return { ...question, waitId, status: "open" };
}

/** A reply of a person is taken. */
export function withReply(event: OwnerWaitEvent): Changes {
  if (event.type === "cancel") return {};
  const who = event.principal === undefined ? {} : { principal: principalToken(event.principal) };
  const base = { answerId: event.answerId, by: "owner", ...who } as const;
  if (event.type === "answer") return { ...base, status: "answered", answer: event.value };
  return { ...base, status: "declined", ...(event.reason === undefined ? {} : { endReason: event.reason }) };
}

/** Nobody replied in time. Only a question that says so takes its default. */
export function withExpiry(context: OwnerWaitContext): Changes {
  if (context.onExpiry === "default" && context.default !== undefined) {
    return { status: "expired", answer: context.default, by: "default" };
  }
  return { status: "expired", endReason: "Nobody answered in time." };
}

/** The question is withdrawn. */
export const withCancel = (event: OwnerWaitEvent): Changes => ({
  status: "cancelled",
  endReason: event.type === "cancel" && event.reason !== undefined ? event.reason : "no reason was given",
});

/** Output of a wait that ended. */
export function waitOutputOf(context: OwnerWaitContext): OwnerWaitOutput {
  const { waitId, answer, by, principal, endReason } = context;
  // The four final states are the only ones with an output; `consumed` is the parent's.
  const status = context.status === "open" || context.status === "consumed" ? "cancelled" : context.status;
  return {
    waitId,
    status,
    ...(answer === undefined ? {} : { answer }),
    ...(by === undefined ? {} : { by }),
    ...(principal === undefined ? {} : { principal }),
    ...(endReason === undefined ? {} : { reason: endReason }),
  };
}
