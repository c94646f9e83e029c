import { conversationSetup } from "./conversation-setup.machine.ts";

/** Its tasks and questions were told to end, and are waited for, not for ever. */
export const closing = conversationSetup.createStateConfig({
  entry: [
    { type: "abandonStep", params: { why: "close" } },
    { type: "noteOutcome", params: { outcome: "closed" } },
  ],
  always: { guard: "hasNothingToWaitFor", target: "closed" },
  after: { closingGrace: { target: "closed" } },
  on: { delete: { guard: "isFirstDeletion", actions: "noteDeletion" } },
});

/** Deleted, but its tasks and questions may end by themselves. */
export const awaiting = conversationSetup.createStateConfig({
  entry: [
    { type: "abandonStep", params: { why: "await" } },
    { type: "noteOutcome", params: { outcome: "closed" } },
  ],
  always: { guard: "hasNothingToWaitFor", target: "closed" },
  on: {
    close: { target: "closing" },
    delete: { guard: "isImpatientDeletion", target: "closing" },
  },
});
