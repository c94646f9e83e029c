import { IDLE_TAG } from "@holdfast/protocol";
import { assign, emit, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import type { OwnerWaitEmitted } from "./emitted-event.ts";
import { judgeAnswer, judgeCancel, judgeRevoke } from "./judge-answer.ts";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitMachineEvent } from "./owner-wait-event.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";
import {
  initialWait,
  waitOutputOf,
  withCancel,
  withExpiry,
  withReply,
  withRevocation,
} from "./owner-wait-settlement.ts";
import { ownIdOf } from "./own-id.ts";

// An owner-wait: a question that stands until people reply, it expires, or it is withdrawn, and its outcome until that is consumed.
// Owns: the question, the replies and their settlement.  Does not own: when whoever asked takes the outcome in.
//   W1 the first fitting reply counts, of each person one; later ones change nothing
//   W2 an agent never replies; nor does anybody but those who are asked, where they are named
//   W3 silence is no answer: a default is taken only on expiry, only where the question allows it, and is called one
//   W4 a reply may be taken back until its outcome is offered to the one who asked; then never
//   W5 `consumed` is told by the one who asked, with the transition that took the outcome in: until then it is offered

const ANNOUNCED = {
  answered: "waitAnswered",
  declined: "waitDeclined",
  expired: "waitExpired",
  cancelled: "waitCancelled",
} as const;

/** An owner-wait as an ordinary state machine; see the comment above and README.md. */
export const ownerWaitMachine = setup({
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
    disarm: enqueueActions(({ enqueue }) => {
      enqueue.cancel("expiry");
      enqueue.cancel("revocation");
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
}).createMachine({
  id: "ownerWait",
  version: "2",
  context: ({ input, self }) => initialWait(input, ownIdOf(self)),
  output: ({ context }) => waitOutputOf(context),
  initial: "open",
  on: { awaited: { actions: "noteAwaited" } },
  states: {
    open: {
      initial: "starting",
      always: { guard: "isSettled", target: "kept" },
      on: {
        answer: { guard: "isGoodReply", actions: "takeReply" },
        decline: { guard: "isGoodReply", actions: "takeReply" },
        revoke: { guard: "isGoodRevocation", actions: "takeBack" },
        cancel: [
          // It waits for no outcome any more.
          { guard: "isCancelOfAsker", target: "ended", actions: ["withdraw", "announceOutcome"] },
          { guard: "isCancelAllowed", target: "settled", actions: ["withdraw", "announceOutcome"] },
        ],
        expiryDue: { target: "settled", actions: ["expire", "announceOutcome"] },
      },
      states: {
        starting: {
          entry: ["armExpiry", { type: "announce", params: { type: "waitOpened" } }],
          always: [{ guard: "hasExpiry", target: "dated" }, { target: "unbounded" }],
        },
        /** Its timer is not bound to this state. */
        dated: {
          always: { guard: "isOverdue", target: "#ownerWait.settled", actions: ["expire", "announceOutcome"] },
        },
        /** Of questions that were asked before an answer could be taken back. */
        bounded: { after: { expiry: { target: "#ownerWait.settled", actions: ["expire", "announceOutcome"] } } },
        // It rests until somebody replies, for ever if nobody does.
        unbounded: { tags: IDLE_TAG },
      },
    },

    /** Answered or declined, and not yet offered to the one who asked (W4). */
    kept: {
      tags: IDLE_TAG,
      entry: ["announceOutcome", "armRevocation"],
      always: { guard: "isTakeable", target: "settled" },
      on: {
        revoke: {
          guard: "isGoodRevocation",
          target: "reopened",
          actions: ["takeBack", "endRevocation", { type: "announce", params: { type: "waitRevoked" } }],
        },
        revocationOver: { actions: "noteRevocationOver" },
        expiryDue: { actions: "noteOverdue" },
        cancel: { guard: "isCancelOfAsker", target: "ended" },
      },
    },
    reopened: { always: [{ guard: "hasExpiry", target: "open.dated" }, { target: "open.unbounded" }] },

    settled: {
      entry: "disarm",
      always: [{ guard: "isConsumedByAsker", target: "offered" }, { target: "ended" }],
    },

    /** The one who asked knows the outcome and says when it is stored (W5). */
    offered: {
      tags: IDLE_TAG,
      entry: "offer",
      on: {
        consumed: { target: "consumed", actions: "noteConsumed" },
        cancel: { guard: "isCancelOfAsker", target: "ended" },
      },
    },

    ended: {
      always: [
        { guard: "wasAnswered", target: "answered" },
        { guard: "wasDeclined", target: "declined" },
        { guard: "wasExpired", target: "expired" },
        { target: "cancelled" },
      ],
    },
    consumed: { type: "final" },
    answered: { type: "final" },
    declined: { type: "final" },
    expired: { type: "final" },
    cancelled: { type: "final" },
  },
});

function announcement(context: OwnerWaitContext, type: OwnerWaitEmitted["type"]): OwnerWaitEmitted {
  const { waitId, conversationId, agent, callId, assignee, by } = context;
  return { type, waitId, conversationId, agent, callId, assignee, ...(by === undefined ? {} : { by }) };
}
