import { IDLE_TAG } from "@holdfast/protocol";
import { assign, emit, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import type { OwnerWaitEmitted } from "./emitted-event.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { judgeCancel, judgeReassign, judgeRevoke } from "./judge-wait-event.ts";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitMachineEvent } from "./owner-wait-event.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";
import {
  nextStep,
  waitOutputOf,
  withCancel,
  withEscalation,
  withExpiry,
  withReassignment,
  withReply,
  withRevocation,
} from "./owner-wait-settlement.ts";

const ANNOUNCED = {
  answered: "waitAnswered",
  declined: "waitDeclined",
  expired: "waitExpired",
  cancelled: "waitCancelled",
} as const;

/** Reminders of a question that says nothing of their number. */
const MAX_REMINDERS = 10;

/** Types, delays, guards and actions of the owner-wait machine. */
export const ownerWaitSetup = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as OwnerWaitContext,
    input: {} as z.input<typeof OwnerWaitInput>,
    events: {} as OwnerWaitMachineEvent,
    output: {} as OwnerWaitOutput,
    emitted: {} as OwnerWaitEmitted,
    tags: IDLE_TAG,
  },
  delays: {
    // Of questions that were asked before an answer could be taken back.
    expiry: ({ context }) => context.expiresInMs ?? 0,
  },
  guards: {
    hasExpiry: ({ context }) => context.expiresInMs !== undefined,
    isGoodReply: ({ context, event }) =>
      (event.type === "answer" || event.type === "decline") &&
      judgeAnswer(context, event, event.principal).kind === "ok",
    isGoodRevocation: ({ context, event }) => event.type === "revoke" && judgeRevoke(context, event).kind === "ok",
    isCancelAllowed: ({ context, event }) =>
      event.type === "cancel" && judgeCancel(context, event.principal).kind === "ok",
    isCancelOfAsker: ({ event }) => event.type === "cancel" && event.principal === undefined,
    isSettled: ({ context }) => context.status !== "open",
    isGoodReassignment: ({ context, event }) =>
      event.type === "reassign" && judgeReassign(context, event).kind === "ok",
    canEscalate: ({ context }) => nextStep(context) !== undefined,
    isToEscalate: ({ context }) => context.isOverdue === true && nextStep(context) !== undefined,
    isReminderWanted: ({ context }) => (context.reminders ?? 0) < (context.maxReminders ?? MAX_REMINDERS),
    isOverdue: ({ context }) => context.isOverdue === true,
    /** Whoever asked says itself when it takes an outcome in. */
    isConsumedByAsker: ({ context }) => context.childId !== undefined,
    isTakeable: ({ context }) =>
      context.isRevocable !== true && (context.childId === undefined || context.isAwaited === true),
    wasAnswered: ({ context }) => context.status === "answered",
    wasDeclined: ({ context }) => context.status === "declined",
    wasExpired: ({ context }) => context.status === "expired",
  },
  actions: {
    announce: emit(({ context }, { type }: { type: OwnerWaitEmitted["type"] }) => announcement(context, type)),
    announceOutcome: enqueueActions(({ context, enqueue }) => {
      const { status } = context;
      if (status !== "open" && status !== "consumed") enqueue.emit(announcement(context, ANNOUNCED[status]));
    }),
    armExpiry: enqueueActions(({ context, enqueue }) => {
      const { expiresInMs } = context;
      // Not bound to a state: the time runs on while a reply stands that may be taken back.
      if (expiresInMs !== undefined) enqueue.raise({ type: "expiryDue" }, { id: "expiry", delay: expiresInMs });
    }),
    armRevocation: enqueueActions(({ context, enqueue }) => {
      const { revocableForMs, isRevocable } = context;
      if (revocableForMs !== undefined && isRevocable === true) {
        enqueue.raise({ type: "revocationOver" }, { id: "revocation", delay: revocableForMs });
      }
    }),
    armReminder: enqueueActions(({ context, enqueue }) => {
      const { remindEveryMs } = context;
      enqueue.cancel("reminder");
      if (remindEveryMs !== undefined) enqueue.raise({ type: "reminderDue" }, { id: "reminder", delay: remindEveryMs });
    }),
    disarmReminder: enqueueActions(({ enqueue }) => {
      enqueue.cancel("reminder");
    }),
    noteReminder: assign({ reminders: ({ context }) => (context.reminders ?? 0) + 1 }),
    reassign: assign(({ context, event }) => withReassignment(context, event)),
    escalate: assign(({ context }) => withEscalation(context)),
    disarm: enqueueActions(({ enqueue }) => {
      enqueue.cancel("expiry");
      enqueue.cancel("revocation");
      enqueue.cancel("reminder");
    }),
    takeReply: assign(({ context, event }) =>
      event.type === "answer" || event.type === "decline" ? withReply(context, event) : {},
    ),
    takeBack: assign(({ context, event }) => withRevocation(context, event)),
    endRevocation: enqueueActions(({ enqueue }) => {
      enqueue.cancel("revocation");
    }),
    noteRevocationOver: assign({ isRevocable: undefined }),
    noteOverdue: assign({ isOverdue: true }),
    noteAwaited: assign({ isAwaited: true }),
    expire: assign(({ context }) => withExpiry(context)),
    withdraw: assign(({ event }) => withCancel(event)),
    offer: enqueueActions(({ context, enqueue }) => {
      enqueue.assign({ isOffered: true });
      const { childId } = context;
      if (childId !== undefined) enqueue.sendParent({ type: "waitSettled", childId, output: waitOutputOf(context) });
    }),
    noteConsumed: assign({ status: "consumed" }),
  },
});

function announcement(context: OwnerWaitContext, type: OwnerWaitEmitted["type"]): OwnerWaitEmitted {
  const { waitId, conversationId, agent, callId, assignee, by } = context;
  return { type, waitId, conversationId, agent, callId, assignee, ...(by === undefined ? {} : { by }) };
}
