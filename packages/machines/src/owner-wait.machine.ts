import { IDLE_TAG } from "@holdfast/protocol";
import { assign, emit, setup } from "xstate";
import type { z } from "zod";
import type { OwnerWaitEmitted } from "./emitted-event.ts";
import { judgeAnswer } from "./judge-answer.ts";
import type { OwnerWaitContext } from "./owner-wait-context.ts";
import type { OwnerWaitEvent } from "./owner-wait-event.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";
import { initialWait, waitOutputOf, withCancel, withExpiry, withReply } from "./owner-wait-settlement.ts";
import { ownIdOf } from "./own-id.ts";

// An owner-wait: a question that stands until a person replies, it expires, or it is withdrawn.
// Owns: the question and its settlement.  Does not own: `consumed`, which is the commit of the one who asked.
//   W1 the first fitting reply counts, later ones change nothing
//   W2 an agent never replies; nor does anybody but the assignee, where one is named
//   W3 silence is no answer: a default is taken only on expiry, only where the question allows it, and is called one

/** An owner-wait as an ordinary state machine; see the comment above and README.md. */
export const ownerWaitMachine = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as OwnerWaitContext,
    input: {} as z.input<typeof OwnerWaitInput>,
    events: {} as OwnerWaitEvent,
    output: {} as OwnerWaitOutput,
    emitted: {} as OwnerWaitEmitted,
    tags: IDLE_TAG,
  },
  delays: { expiry: ({ context }) => context.expiresInMs ?? 0 },
  guards: {
    hasExpiry: ({ context }) => context.expiresInMs !== undefined,
    isGoodReply: ({ context, event }) =>
      event.type !== "cancel" && judgeAnswer(context, event, event.principal).kind === "ok",
    isCancelAllowed: ({ event }) => event.principal?.kind !== "agent",
  },
  actions: {
    announce: emit(({ context }, { type }: { type: OwnerWaitEmitted["type"] }) => {
      const { waitId, conversationId, agent, callId, assignee, by } = context;
      return { type, waitId, conversationId, agent, callId, assignee, ...(by === undefined ? {} : { by }) };
    }),
    takeReply: assign(({ event }) => withReply(event)),
    expire: assign(({ context }) => withExpiry(context)),
    withdraw: assign(({ event }) => withCancel(event)),
  },
}).createMachine({
  id: "ownerWait",
  version: "1",
  context: ({ input, self }) => initialWait(input, ownIdOf(self)),
  output: ({ context }) => waitOutputOf(context),
  initial: "open",
  states: {
    open: {
      initial: "starting",
      entry: { type: "announce", params: { type: "waitOpened" } },
      on: {
        answer: { guard: "isGoodReply", target: "answered", actions: "takeReply" },
        decline: { guard: "isGoodReply", target: "declined", actions: "takeReply" },
        cancel: { guard: "isCancelAllowed", target: "cancelled", actions: "withdraw" },
      },
      states: {
        starting: { always: [{ guard: "hasExpiry", target: "bounded" }, { target: "unbounded" }] },
        bounded: { after: { expiry: { target: "#ownerWait.expired", actions: "expire" } } },
        // It rests until somebody replies, for ever if nobody does.
        unbounded: { tags: IDLE_TAG },
      },
    },
    answered: { type: "final", entry: { type: "announce", params: { type: "waitAnswered" } } },
    declined: { type: "final", entry: { type: "announce", params: { type: "waitDeclined" } } },
    expired: { type: "final", entry: { type: "announce", params: { type: "waitExpired" } } },
    cancelled: { type: "final", entry: { type: "announce", params: { type: "waitCancelled" } } },
  },
});
