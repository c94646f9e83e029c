import { IDLE_TAG } from "@holdfast/protocol";
import { ownIdOf } from "./own-id.ts";
import { initialTask, taskOutputOf } from "./task-context.ts";
import { taskSetup } from "./task-setup.machine.ts";

// A task: one piece of delegated work, done in a conversation of its own by a sub-agent.
// Owns: when it starts, its limits, how the work ended.  Does not own: the work (the conversation), the call it answers (the parent).
//   K1 it ends exactly once, with a result or with a cause
//   K2 being stopped is bounded: a conversation that does not answer is left behind
//   K3 work that was finished counts, also when the task was being stopped
//   K4 one that is kept tells how each run ended, and rests; a follow-up goes to the same conversation
//   K5 a task that waits for its turn has a record that says so: `queued`

/** A task as an ordinary state machine; see the comment above and README.md. */
export const taskMachine = taskSetup.createMachine({
  id: "task",
  version: "2",
  context: ({ input, self }) => initialTask(input, ownIdOf(self)),
  output: ({ context }) => taskOutputOf(context),
  entry: [{ type: "announce", params: { type: "taskCreated" } }, "armLimits"],
  initial: "entering",
  on: {
    continueTask: { actions: "noteFollowUp" },
    release: { actions: "noteRelease" },
  },
  states: {
    entering: {
      always: [
        { guard: "hasToWait", target: "queued" },
        { guard: "needsSlot", target: "queued.forSlot" },
        { target: "active" },
      ],
    },

    queued: {
      initial: "forTurn",
      on: {
        cancel: { target: "cancelled", actions: [{ type: "noteStopping", params: { why: "cancelled" } }, "noteEnd"] },
        deadlineOver: {
          target: "timedOut",
          actions: [{ type: "noteStopping", params: { why: "timedOut" } }, "noteEnd"],
        },
        continueTask: { actions: ["noteFollowUp", "addToPrompt"] },
        followUp: { actions: "addToPrompt" },
        // Who waits for a turn is not silent.
        idleOver: { actions: "noteActivity" },
      },
      states: {
        forTurn: {
          tags: IDLE_TAG,
          entry: { type: "announce", params: { type: "taskQueued" } },
          on: { proceed: [{ guard: "needsSlot", target: "forSlot" }, { target: "#task.active" }] },
        },
        forSlot: {
          entry: "takePlace",
          // In this order: a slot that is given back first would be given to somebody else.
          on: { slotGranted: { target: "#task.active", actions: ["takeSlot", "leavePlace"] } },
        },
      },
    },

    active: {
      initial: "starting",
      entry: { type: "announce", params: { type: "taskStarted" } },
      exit: ["leaveSlot", "disarmLimits"],
      invoke: {
        id: "conversation",
        src: "conversation",
        input: ({ context }) => ({
          agent: context.subagent,
          agents: context.agents,
          prompt: context.prompt,
          ...(context.description === "" ? {} : { title: context.description }),
          ...(context.budget === undefined ? {} : { budget: context.budget }),
          parentTask: {
            taskId: context.taskId,
            callId: context.callId,
            depth: context.depth,
            ...(context.maxDepth === undefined ? {} : { maxDepth: context.maxDepth }),
            ...(context.isKept === true ? { isKept: true } : {}),
            ...(context.canAsk === true ? { canAsk: true } : {}),
            ...(context.wantsPulse === true || context.idleMs !== undefined ? { wantsPulse: true } : {}),
          },
        }),
        onDone: [
          { guard: "endsCompleted", target: "completed", actions: "noteEnd" },
          { guard: "endsCancelled", target: "cancelled", actions: "noteEnd" },
          { guard: "endsTimedOut", target: "timedOut", actions: "noteEnd" },
          { target: "failed", actions: "noteEnd" },
        ],
        onError: [
          { guard: "endsCancelled", target: "cancelled", actions: "noteEnd" },
          { guard: "endsTimedOut", target: "timedOut", actions: "noteEnd" },
          { target: "failed", actions: "noteEnd" },
        ],
      },
      on: {
        conversationStatus: { guard: "isStatusNews", actions: "passStatusOn" },
        conversationActive: { actions: "noteActivity" },
        conversationAsked: { actions: "passQuestionOn" },
        continueTask: { actions: ["noteFollowUp", "passFollowUpOn"] },
        followUp: { actions: "passFollowUpOn" },
        conversationReported: [
          { guard: "isKeptAndReleased", target: "closed", actions: "reportRun" },
          { guard: "isKept", target: ".resting", actions: "reportRun" },
        ],
      },
      states: {
        starting: { always: "unbounded" },
        /** Only tasks of the first version of this machine are here. */
        bounded: {
          after: { deadline: { target: "stopping", actions: { type: "noteStopping", params: { why: "timedOut" } } } },
          on: { cancel: { target: "stopping", actions: { type: "noteStopping", params: { why: "cancelled" } } } },
        },
        unbounded: {
          on: {
            cancel: [
              {
                guard: "isFinalCancel",
                target: "stopping",
                actions: ["noteRelease", { type: "noteStopping", params: { why: "cancelled" } }],
              },
              { target: "stopping", actions: { type: "noteStopping", params: { why: "cancelled" } } },
            ],
            deadlineOver: { target: "stopping", actions: { type: "noteStopping", params: { why: "timedOut" } } },
            idleOver: { target: "stopping", actions: { type: "noteStopping", params: { why: "idle" } } },
          },
        },
        stopping: {
          entry: "closeConversation",
          after: {
            stopGrace: [
              { guard: "endsTimedOut", target: "#task.timedOut", actions: "noteEnd" },
              { target: "#task.cancelled", actions: "noteEnd" },
            ],
          },
          on: {
            cancel: { guard: "isFinalCancel", actions: ["noteRelease", "closeConversation"] },
            // It would begin what is being ended. The end says that it was known.
            continueTask: { actions: "noteFollowUp" },
            followUp: {},
            conversationAsked: {},
          },
        },
        /** K4. Its conversation rests as well. */
        resting: {
          tags: IDLE_TAG,
          entry: ["leaveSlot", "disarmLimits"],
          on: {
            conversationStatus: {},
            continueTask: {
              target: "unbounded",
              actions: ["noteFollowUp", "takeSlot", "armLimits", "beginRun", "passFollowUpOn"],
            },
            followUp: {
              target: "unbounded",
              actions: ["takeSlot", "armLimits", "beginRun", "passFollowUpOn"],
            },
            release: { target: "#task.closed", actions: "noteRelease" },
            cancel: { guard: "isFinalCancel", target: "#task.closed", actions: "noteRelease" },
          },
        },
      },
    },

    completed: { type: "final", entry: { type: "announce", params: { type: "taskCompleted" } } },
    failed: { type: "final", entry: { type: "announce", params: { type: "taskFailed" } } },
    cancelled: { type: "final", entry: { type: "announce", params: { type: "taskCancelled" } } },
    timedOut: { type: "final", entry: { type: "announce", params: { type: "taskTimedOut" } } },
    closed: { type: "final", entry: { type: "announce", params: { type: "taskClosed" } } },
  },
});
