import { IDLE_TAG } from "@holdfast/protocol";
import { conversationSetup } from "./conversation-setup.machine.ts";

/** Its wallet gives nothing more. It rests until a person lets it go on; raising a limit alone wakes nobody. */
export const outOfBudget = conversationSetup.createStateConfig({
  tags: IDLE_TAG,
  entry: [
    { type: "announce", params: { type: "conversationWaiting" } },
    { type: "reportToTask", params: { status: "waiting" } },
    "askForBudget",
  ],
  on: {
    userMessage: { guard: "isAcceptable", actions: "acceptMessage" },
    resume: { target: "turn.working.deciding", actions: ["withdrawBudgetQuestion", "takeLeave"] },
    run: { target: "turn.working.deciding", actions: ["withdrawBudgetQuestion", "takeLeave"] },
    "xstate.done.actor.*": [
      {
        guard: "isStopAnswer",
        target: "failing",
        actions: [{ type: "noteLimit", params: { limit: "wallet" } }, "forgetChild"],
      },
      { guard: "isBudgetAnswer", target: "turn.working.deciding", actions: ["takeLeave", "forgetChild"] },
    ],
    interrupt: {
      target: "paused",
      actions: ["withdrawBudgetQuestion", { type: "notePausedBy", params: { by: "interrupt" } }],
    },
    pause: {
      target: "paused",
      actions: ["withdrawBudgetQuestion", { type: "notePausedBy", params: { by: "pause" } }],
    },
    stopRun: {
      target: "paused",
      actions: [
        "withdrawBudgetQuestion",
        { type: "notePausedBy", params: { by: "interrupt" } },
        { type: "reportRun", params: { outcome: "closed" } },
      ],
    },
    close: { target: "closing", actions: "withdrawBudgetQuestion" },
    delete: [
      { guard: "isPatientDeletion", target: "awaiting", actions: ["withdrawBudgetQuestion", "noteDeletion"] },
      { guard: "isFirstDeletion", target: "closing", actions: ["withdrawBudgetQuestion", "noteDeletion"] },
    ],
  },
});
