import { IDLE_TAG } from "@holdfast/protocol";
import { initialWait, waitOutputOf } from "./owner-wait-settlement.ts";
import { ownerWaitSetup } from "./owner-wait-setup.machine.ts";
import { ownIdOf } from "./own-id.ts";

// An owner-wait: a question that stands until people reply, it expires, or it is withdrawn, and its outcome until that is consumed.
// Owns: the question, the replies and their settlement.  Does not own: when whoever asked takes the outcome in.
//   W1 the first fitting reply counts, of each person one; later ones change nothing
//   W2 an agent never replies; nor does anybody but those who are asked, where they are named
//   W3 silence is no answer: a default is taken only on expiry, only where the question allows it, and is called one
//   W4 a reply may be taken back until its outcome is offered to the one who asked; then never
//   W5 `consumed` is told by the one who asked, with the transition that took the outcome in: until then it is offered

const ESCALATION = [
  "escalate" as const,
  "armExpiry" as const,
  "armReminder" as const,
  { type: "announce" as const, params: { type: "waitEscalated" as const } },
];

/** An owner-wait as an ordinary state machine; see the comment above and README.md. */
export const ownerWaitMachine = ownerWaitSetup.createMachine({
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
        reassign: {
          guard: "isGoodReassignment",
          actions: ["reassign", "armReminder", { type: "announce", params: { type: "waitReassigned" } }],
        },
        reminderDue: {
          guard: "isReminderWanted",
          actions: ["noteReminder", "armReminder", { type: "announce", params: { type: "waitReminded" } }],
        },
        expiryDue: [
          { guard: "canEscalate", actions: ESCALATION },
          { target: "settled", actions: ["expire", "announceOutcome"] },
        ],
      },
      states: {
        starting: {
          entry: ["armExpiry", "armReminder", { type: "announce", params: { type: "waitOpened" } }],
          always: [{ guard: "hasExpiry", target: "dated" }, { target: "unbounded" }],
        },
        /** Its timer is not bound to this state. */
        dated: {
          always: [
            { guard: "isToEscalate", actions: ESCALATION },
            { guard: "isOverdue", target: "#ownerWait.settled", actions: ["expire", "announceOutcome"] },
          ],
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
      entry: ["announceOutcome", "armRevocation", "disarmReminder"],
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
    reopened: {
      entry: "armReminder",
      always: [{ guard: "hasExpiry", target: "open.dated" }, { target: "open.unbounded" }],
    },

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
