import { IDLE_TAG } from "@holdfast/protocol";
import { initialConversation } from "./conversation-context.ts";
import { outOfBudget } from "./conversation-budget.machine.ts";
import { outputOf } from "./conversation-reading.ts";
import { awaiting, closing } from "./conversation-ending.machine.ts";
import { condensed, condensing } from "./conversation-condensing.machine.ts";
import { restAfter } from "./conversation-failed.machine.ts";
import { conversationSetup } from "./conversation-setup.machine.ts";
import { ownIdOf } from "./own-id.ts";

// A conversation: takes user messages, lets the model and its tools work until there is an answer, and rests.
// Owns: which step runs, which calls are open, what waits.  Does not own: the messages (the journal; see transcript.ts).
//   C1 every tool call gets exactly one result, whatever becomes of the job, task or question behind it
//   C2 the model is called only when no call is open
//   C3 an accepted user message is taken in by the next model call, once, in order
//   C4 an outcome of a child that is no longer waited for changes nothing
//   C5 time that a person takes (pause, open question) or in which only tasks work is not time of the turn: tasks have limits of their own

/** A conversation as an ordinary state machine; see the comment above and README.md. */
export const conversationMachine = conversationSetup.createMachine({
  id: "conversation",
  version: "3",
  context: ({ input, self }) => initialConversation(input, ownIdOf(self)),
  output: ({ context }) => outputOf(context),
  entry: { type: "announce", params: { type: "conversationCreated" } },
  initial: "starting",
  on: {
    describe: { guard: "isDescriptionNews", actions: "describe" },
    switchModel: { guard: "isModelNews", actions: "switchModel" },
    forked: { guard: "isForkNews", actions: "noteFork" },
    delete: [
      { guard: "isPatientDeletion", target: ".awaiting", actions: "noteDeletion" },
      { guard: "isFirstDeletion", target: ".closing", actions: "noteDeletion" },
    ],
    // C4: outcomes of children that nobody waits for any more. Without these an error of one would end the conversation.
    "xstate.done.actor.*": { actions: ["noteTaskNews", "forgetChild"] },
    "xstate.error.actor.*": { actions: ["noteTaskNews", "forgetChild"] },
    taskReported: { guard: "isTaskNews", actions: "noteTaskNews" },
    taskAsked: { guard: "isTaskNews", actions: "noteTaskNews" },
    taskStatus: { guard: "isTaskNews", actions: "noteTaskNews" },
    taskActive: { guard: "isWatched", actions: "tellPulse" },
  },
  states: {
    starting: { always: [{ guard: "beginsAtOnce", target: "turn" }, { target: "idle" }] },

    idle: {
      tags: IDLE_TAG,
      entry: [
        "dropPauseRequest",
        { type: "announce", params: { type: "conversationIdle" } },
        { type: "reportRun", params: { outcome: "answered" } },
      ],
      // Whoever waits for the answer has been told by now.
      always: { guard: "isFull", target: "condensing", actions: { type: "noteRest", params: { rest: "idle" } } },
      on: {
        userMessage: [
          { guard: "isAcceptedToRun", target: "turn", actions: "acceptMessage" },
          { guard: "isAcceptable", actions: "acceptMessage" },
        ],
        run: { guard: "hasMessages", target: "turn" },
        condense: {
          guard: "isCondensable",
          target: "condensing",
          actions: { type: "noteRest", params: { rest: "idle" } },
        },
        close: { target: "closing" },
      },
    },

    turn: {
      initial: "working",
      on: {
        userMessage: { guard: "isAcceptable", actions: "acceptMessage" },
        pause: { guard: "isPauseNews", actions: "requestPause" },
        resume: { guard: "isPauseRequested", actions: "dropPauseRequest" },
        interrupt: {
          target: "paused",
          actions: [
            { type: "abandonStep", params: { why: "interrupt" } },
            { type: "notePausedBy", params: { by: "interrupt" } },
          ],
        },
        close: { target: "closing" },
        condense: { guard: "isCondenseNews", actions: "requestCondense" },
        cancelTask: { guard: "isOpenCall", actions: ["cancelCall", "startTools"] },
        taskStatus: [
          { guard: "isTaskNews", actions: "noteTaskNews" },
          { guard: "isStatusNews", actions: "noteTaskStatus" },
        ],
        taskWaitOver: { guard: "isOpenWait", actions: "endTaskWait" },
        parentAnswered: { guard: "isOpenQuestion", actions: "takeParentAnswer" },
        stopRun: {
          target: "paused",
          actions: [
            { type: "abandonStep", params: { why: "interrupt" } },
            { type: "notePausedBy", params: { by: "interrupt" } },
            { type: "reportRun", params: { outcome: "closed" } },
          ],
        },
        waitSettled: { guard: "isCallOutcome", actions: ["settleCall", "startTools", "tellPulse"] },
        "xstate.done.actor.*": {
          guard: "isCallOutcome",
          actions: ["settleCall", "forgetChild", "startTools", "tellPulse"],
        },
        "xstate.error.actor.*": {
          guard: "isCallOutcome",
          actions: ["settleCall", "forgetChild", "startTools", "tellPulse"],
        },
      },
      states: {
        // Its time is limited; `delegating` and `asking` are outside of it (C5).
        working: {
          initial: "thinking",
          entry: ["announceRunning", { type: "reportToTask", params: { status: "running" } }],
          after: {
            turnTime: {
              target: "#conversation.failing",
              actions: [
                { type: "abandonStep", params: { why: "turnTime" } },
                { type: "noteLimit", params: { limit: "turnTime" } },
              ],
            },
          },
          states: {
            thinking: {
              entry: ["callModel", "tellPulse"],
              on: {
                "xstate.done.actor.*": [
                  { guard: "isReplyWithCalls", target: "acting", actions: ["takeReply", "startTools", "forgetChild"] },
                  { guard: "isAnswer", target: "#conversation.answered", actions: ["takeReply", "forgetChild"] },
                  {
                    guard: "isModelOutcome",
                    target: "#conversation.failing",
                    actions: ["noteModelFailure", "takeReply", "forgetChild"],
                  },
                ],
                "xstate.error.actor.*": [
                  {
                    guard: "isRefusedToRest",
                    target: "#conversation.outOfBudget",
                    actions: ["noteRefusal", "forgetChild"],
                  },
                  {
                    guard: "isRefusedMoney",
                    target: "#conversation.failing",
                    actions: ["noteRefusal", { type: "noteLimit", params: { limit: "wallet" } }, "forgetChild"],
                  },
                  {
                    guard: "isModelOutcome",
                    target: "#conversation.failing",
                    actions: ["noteModelFailure", "forgetChild"],
                  },
                ],
              },
            },
            acting: {
              always: [
                { guard: "isStepOver", target: "deciding", actions: "closeStep" },
                { guard: "areAllWaitingForPerson", target: "#conversation.turn.asking" },
                { guard: "areOnlyTasksWorking", target: "#conversation.turn.delegating" },
              ],
            },
            /** Between two steps (C2). */
            deciding: {
              always: [
                {
                  guard: "isPauseRequested",
                  target: "#conversation.paused",
                  actions: { type: "notePausedBy", params: { by: "pause" } },
                },
                {
                  guard: "isToCondense",
                  target: "#conversation.condensing",
                  actions: { type: "noteRest", params: { rest: "turn" } },
                },
                { guard: "hasMessages", target: "thinking" },
                {
                  guard: "isStuck",
                  target: "#conversation.failing",
                  actions: { type: "noteLimit", params: { limit: "stuck" } },
                },
                {
                  guard: "isOutOfIterations",
                  target: "#conversation.failing",
                  actions: { type: "noteLimit", params: { limit: "iterations" } },
                },
                {
                  guard: "isOutOfBudget",
                  target: "#conversation.failing",
                  actions: { type: "noteLimit", params: { limit: "budget" } },
                },
                {
                  guard: "isFull",
                  target: "#conversation.condensing",
                  actions: { type: "noteRest", params: { rest: "turn" } },
                },
                { guard: "isToNudge", target: "thinking", actions: "noteNudge" },
                { target: "thinking" },
              ],
            },
          },
        },
        /** Its tasks work, nothing of its own does. It goes on as one that was running all the time. */
        delegating: {
          always: [
            { guard: "isStepOver", target: "working.deciding", actions: ["noteContinued", "closeStep"] },
            { guard: "areAllWaitingForPerson", target: "asking" },
          ],
        },
        asking: {
          entry: [
            { type: "announce", params: { type: "conversationWaiting" } },
            { type: "reportToTask", params: { status: "waiting" } },
            "tellAwaited",
          ],
          always: [
            { guard: "isStepOver", target: "working.deciding", actions: "closeStep" },
            { guard: "isSomethingWorking", target: "working.acting" },
            { guard: "isOnlyParentAsked", target: "askingParent" },
          ],
        },
        /** No child will wake it: whoever delegated the work answers, or lets it go. */
        askingParent: {
          tags: IDLE_TAG,
          always: [
            { guard: "isStepOver", target: "working.deciding", actions: "closeStep" },
            { guard: "isSomethingWorking", target: "working.acting" },
          ],
        },
      },
    },

    answered: {
      always: [
        {
          guard: "hasHeldMessages",
          target: "paused",
          actions: { type: "notePausedBy", params: { by: "pause" } },
        },
        {
          guard: "isCondenseRequested",
          target: "condensing",
          actions: { type: "noteRest", params: { rest: "idle" } },
        },
        { guard: "hasMessages", target: "turn" },
        {
          guard: "endsWithAnswer",
          target: "finished",
          actions: { type: "noteOutcome", params: { outcome: "answered" } },
        },
        { target: "idle" },
      ],
    },

    failing: {
      always: [
        {
          guard: "hasHeldMessages",
          target: "paused",
          actions: { type: "notePausedBy", params: { by: "pause" } },
        },
        { guard: "hasMessages", target: "turn" },
        { guard: "endsWithAnswer", target: "failed", actions: { type: "noteOutcome", params: { outcome: "failed" } } },
        { guard: "wasStuck", target: "stuck" },
        { target: "error" },
      ],
    },

    paused: {
      tags: IDLE_TAG,
      entry: [
        "dropPauseRequest",
        { type: "announce", params: { type: "conversationPaused" } },
        { type: "reportToTask", params: { status: "held" } },
      ],
      on: {
        userMessage: [
          { guard: "isAcceptedAfterInterrupt", target: "turn", actions: "acceptMessage" },
          { guard: "isAcceptable", actions: "acceptMessage" },
        ],
        pause: { guard: "isInterrupted", actions: { type: "notePausedBy", params: { by: "pause" } } },
        resume: { target: "turn.working.deciding" },
        run: { target: "turn.working.deciding" },
        condense: {
          guard: "isCondensable",
          target: "condensing",
          actions: { type: "noteRest", params: { rest: "paused" } },
        },
        stopRun: {
          actions: [
            { type: "notePausedBy", params: { by: "interrupt" } },
            { type: "reportRun", params: { outcome: "closed" } },
          ],
        },
        close: { target: "closing" },
      },
    },

    error: restAfter("error", "conversationError"),
    stuck: restAfter("stuck", "conversationStuck"),

    outOfBudget,

    condensing,
    condensed,

    closing,
    awaiting,

    closed: { type: "final", entry: { type: "announce", params: { type: "conversationClosed" } } },
    finished: { type: "final", entry: { type: "announce", params: { type: "conversationClosed" } } },
    failed: { type: "final", entry: { type: "announce", params: { type: "conversationError" } } },
  },
});
