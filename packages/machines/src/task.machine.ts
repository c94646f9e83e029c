import { assign, emit, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import { childOutcomeOf } from "./child-outcome.ts";
import type { ConversationEvent } from "./conversation-event.ts";
import type { ConversationInput } from "./conversation-input.ts";
import type { ConversationOutput } from "./conversation-output.ts";
import type { TaskEmitted } from "./emitted-event.ts";
import { ownIdOf } from "./own-id.ts";
import { actorOfOwn } from "./placeholder.machine.ts";
import { endByError, endByOutput, initialTask, stoppedEnd, taskOutputOf, type TaskContext } from "./task-context.ts";
import type { TaskMachineEvent } from "./task-event.ts";
import type { TaskInput } from "./task-input.ts";
import type { TaskOutput } from "./task-output.ts";

// A task: one piece of delegated work, done in a conversation of its own by a sub-agent.
// Owns: the deadline, how the work ended.  Does not own: the work (the conversation), the call it answers (the parent).
//   K1 it ends exactly once, with a result or with a cause
//   K2 being stopped is bounded: a conversation that does not answer is left behind
//   K3 work that was finished counts, also when the task was being stopped

/** Time for the conversation to report what it has when the task is stopped. */
const STOP_GRACE_MS = 15_000;

const STATUS_ANNOUNCEMENT = { running: "taskResumed", waiting: "taskWaiting", held: "taskHeld" } as const;

function endOf({ context, event }: { readonly context: TaskContext; readonly event: { readonly type: string } }) {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind === "done") return endByOutput(context, outcome.output);
  return outcome?.kind === "failed" ? endByError(context, outcome.error) : context.stopping;
}

/** A task as an ordinary state machine; see the comment above and README.md. */
export const taskMachine = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as TaskContext,
    input: {} as z.input<typeof TaskInput>,
    events: {} as TaskMachineEvent,
    output: {} as TaskOutput,
    emitted: {} as TaskEmitted,
  },
  actors: {
    conversation: actorOfOwn<z.input<typeof ConversationInput>, ConversationOutput, ConversationEvent>(),
  },
  delays: {
    deadline: ({ context }) => context.deadlineMs ?? 0,
    stopGrace: STOP_GRACE_MS,
  },
  guards: {
    hasDeadline: ({ context }) => context.deadlineMs !== undefined,
    isStatusNews: ({ context, event }) =>
      event.type === "conversationStatus" && event.status !== context.conversationStatus,
    endsCompleted: (moment) => endOf(moment)?.status === "completed",
    endsCancelled: (moment) => endOf(moment)?.status === "cancelled",
    endsTimedOut: (moment) => endOf(moment)?.status === "timedOut",
  },
  actions: {
    announce: emit(({ context }, { type }: { type: TaskEmitted["type"] }) => {
      const { cause, conversationId } = context.end ?? {};
      return {
        type,
        agent: context.subagent.name,
        callId: context.callId,
        ...(cause === undefined ? {} : { cause }),
        ...(conversationId === undefined ? {} : { conversationId }),
      };
    }),
    passStatusOn: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "conversationStatus") return;
      const { status } = event;
      enqueue.assign({ conversationStatus: status });
      enqueue.emit({ type: STATUS_ANNOUNCEMENT[status], agent: context.subagent.name, callId: context.callId });
      enqueue.sendParent({ type: "taskStatus", childId: context.childId, status });
    }),
    noteStopping: assign(({ context, event }, { why }: { why: "cancelled" | "timedOut" }) => ({
      stopping: stoppedEnd(why, context, event.type === "cancel" ? event.reason : undefined),
    })),
    noteEnd: assign((moment) => {
      const end = endOf(moment);
      return end === undefined ? {} : { end };
    }),
    closeConversation: enqueueActions(({ enqueue }) => {
      enqueue.sendTo("conversation", { type: "close" });
    }),
  },
}).createMachine({
  id: "task",
  version: "1",
  context: ({ input, self }) => initialTask(input, ownIdOf(self)),
  output: ({ context }) => taskOutputOf(context),
  entry: { type: "announce", params: { type: "taskCreated" } },
  initial: "active",
  states: {
    active: {
      initial: "starting",
      entry: { type: "announce", params: { type: "taskStarted" } },
      invoke: {
        id: "conversation",
        src: "conversation",
        input: ({ context }) => ({
          agent: context.subagent,
          agents: context.agents,
          prompt: context.prompt,
          ...(context.description === "" ? {} : { title: context.description }),
          parentTask: { taskId: context.taskId, callId: context.callId, depth: context.depth },
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
      on: { conversationStatus: { guard: "isStatusNews", actions: "passStatusOn" } },
      states: {
        starting: { always: [{ guard: "hasDeadline", target: "bounded" }, { target: "unbounded" }] },
        bounded: {
          after: { deadline: { target: "stopping", actions: { type: "noteStopping", params: { why: "timedOut" } } } },
          on: { cancel: { target: "stopping", actions: { type: "noteStopping", params: { why: "cancelled" } } } },
        },
        unbounded: {
          on: { cancel: { target: "stopping", actions: { type: "noteStopping", params: { why: "cancelled" } } } },
        },
        stopping: {
          entry: "closeConversation",
          after: {
            stopGrace: [
              { guard: "endsTimedOut", target: "#task.timedOut", actions: "noteEnd" },
              { target: "#task.cancelled", actions: "noteEnd" },
            ],
          },
        },
      },
    },
    completed: { type: "final", entry: { type: "announce", params: { type: "taskCompleted" } } },
    failed: { type: "final", entry: { type: "announce", params: { type: "taskFailed" } } },
    cancelled: { type: "final", entry: { type: "announce", params: { type: "taskCancelled" } } },
    timedOut: { type: "final", entry: { type: "announce", params: { type: "taskTimedOut" } } },
  },
});
