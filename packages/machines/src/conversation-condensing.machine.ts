import { conversationSetup } from "./conversation-setup.machine.ts";

/** A summary of the past is written; whatever becomes of it, the conversation goes on where it was. */
export const condensing = conversationSetup.createStateConfig({
  entry: [{ type: "announce", params: { type: "conversationRunning" } }, "callCondenser"],
  on: {
    userMessage: [
      {
        guard: "isContinuation",
        actions: ["acceptMessage", { type: "noteRest", params: { rest: "idle" } }],
      },
      { guard: "isAcceptable", actions: "acceptMessage" },
    ],
    pause: { guard: "isPauseOfTurn", actions: "requestPause" },
    resume: { guard: "isPauseRequested", actions: "dropPauseRequest" },
    interrupt: [
      {
        guard: { type: "isRest", params: { rest: "turn" } },
        target: "paused",
        actions: ["dropCondensation", { type: "notePausedBy", params: { by: "interrupt" } }],
      },
      { target: "condensed", actions: "dropCondensation" },
    ],
    stopRun: {
      guard: { type: "isRest", params: { rest: "turn" } },
      target: "paused",
      actions: [
        "dropCondensation",
        { type: "notePausedBy", params: { by: "interrupt" } },
        { type: "reportRun", params: { outcome: "closed" } },
      ],
    },
    close: { target: "closing" },
    "xstate.done.actor.*": {
      guard: "isCondensation",
      target: "condensed",
      actions: ["takeCondensation", "forgetChild"],
    },
    "xstate.error.actor.*": { guard: "isCondensation", target: "condensed", actions: "forgetChild" },
  },
  after: { turnTime: { target: "condensed", actions: "dropCondensation" } },
});

/** Back to where it was. */
export const condensed = conversationSetup.createStateConfig({
  always: [
    { guard: { type: "isRest", params: { rest: "turn" } }, target: "turn.working.deciding" },
    { guard: { type: "isRest", params: { rest: "paused" } }, target: "paused" },
    { guard: "hasMessages", target: "turn" },
    { guard: { type: "isRest", params: { rest: "error" } }, target: "error" },
    { guard: { type: "isRest", params: { rest: "stuck" } }, target: "stuck" },
    {
      guard: "endsWithAnswer",
      target: "finished",
      actions: { type: "noteOutcome", params: { outcome: "answered" } },
    },
    { target: "idle" },
  ],
});
