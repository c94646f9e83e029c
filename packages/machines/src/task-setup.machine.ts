import { assign, emit, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import { boundedText } from "./bounded-text.ts";
import { childOutcomeOf } from "./child-outcome.ts";
import type { ConversationEvent, FromTaskEvent } from "./conversation-event.ts";
import { MAX_MESSAGE_CHARACTERS, type ConversationInput } from "./conversation-input.ts";
import type { ConversationOutput } from "./conversation-output.ts";
import type { TaskEmitted } from "./emitted-event.ts";
import { actorOfOwn } from "./placeholder.machine.ts";
import { endByError, endByOutput, stoppedEnd, taskOutputOf, type TaskContext } from "./task-context.ts";
import type { TaskMachineEvent } from "./task-event.ts";
import type { TaskInput } from "./task-input.ts";
import type { TaskOutput } from "./task-output.ts";
import { ENDLESS_SLOTS, slotLogic } from "./task-slot.ts";

/** Time for the conversation to report what it has when the task is stopped. */
const STOP_GRACE_MS = 15_000;

const STATUS_ANNOUNCEMENT = { running: "taskResumed", waiting: "taskWaiting", held: "taskHeld" } as const;
const END_ANNOUNCEMENT = {
  completed: "taskCompleted",
  failed: "taskFailed",
  cancelled: "taskCancelled",
  timedOut: "taskTimedOut",
} as const;

interface Moment {
  readonly context: TaskContext;
  readonly event: TaskMachineEvent | { readonly type: string };
}

/** How the run ends by this event; undefined when the event says nothing about it. */
function endOf({ context, event }: Moment) {
  const outcome = childOutcomeOf(event);
  if (outcome?.kind === "done") return endByOutput(context, outcome.output);
  if (outcome?.kind === "failed") return endByError(context, outcome.error);
  if (event.type === "conversationReported" && "output" in event) return endByOutput(context, event.output);
  return context.stopping;
}

/** Types, children, delays, guards and actions of the task machine. */
export const taskSetup = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as TaskContext,
    input: {} as z.input<typeof TaskInput>,
    events: {} as TaskMachineEvent,
    output: {} as TaskOutput,
    emitted: {} as TaskEmitted,
  },
  actors: {
    conversation: actorOfOwn<
      z.input<typeof ConversationInput>,
      ConversationOutput,
      ConversationEvent | FromTaskEvent
    >(),
    slot: slotLogic(ENDLESS_SLOTS),
  },
  delays: {
    // Of tasks that were started before the whole life of a task had one deadline.
    deadline: ({ context }) => context.deadlineMs ?? 0,
    stopGrace: STOP_GRACE_MS,
  },
  guards: {
    hasToWait: ({ context }) => context.isHeld === true,
    needsSlot: ({ context }) => context.root !== undefined || context.budget !== undefined,
    isStatusNews: ({ context, event }) =>
      event.type === "conversationStatus" && event.status !== context.conversationStatus,
    endsCompleted: (moment) => endOf(moment)?.status === "completed",
    endsCancelled: (moment) => endOf(moment)?.status === "cancelled",
    endsTimedOut: (moment) => endOf(moment)?.status === "timedOut",
    isReleased: ({ context }) => context.isReleased === true,
    isFinalCancel: ({ event }) => event.type === "cancel" && "isFinal" in event && event.isFinal,
    isKept: ({ context }) => context.isKept === true,
    isKeptAndReleased: ({ context }) => context.isKept === true && context.isReleased === true,
  },
  actions: {
    announce: emit(({ context }, { type }: { type: TaskEmitted["type"] }) => announcement(context, type)),
    armLimits: enqueueActions(({ context, enqueue }) => {
      const { deadlineMs, idleMs } = context;
      if (deadlineMs !== undefined) {
        enqueue.raise({ type: "deadlineOver" }, { id: "deadline", delay: deadlineMs });
      }
      if (idleMs !== undefined) enqueue.raise({ type: "idleOver" }, { id: "idle", delay: idleMs });
    }),
    disarmLimits: enqueueActions(({ enqueue }) => {
      enqueue.cancel("deadline");
      enqueue.cancel("idle");
    }),
    /** Something has happened in it: its own silence begins anew, and so does that of whoever waits for it. */
    noteActivity: enqueueActions(({ context, enqueue }) => {
      const { idleMs, childId } = context;
      if (idleMs !== undefined) {
        enqueue.cancel("idle");
        enqueue.raise({ type: "idleOver" }, { id: "idle", delay: idleMs });
      }
      if (context.wantsPulse === true) enqueue.sendParent({ type: "taskActive", childId });
    }),
    /** Its place among those that wait. */
    takePlace: enqueueActions(({ context, enqueue }) => {
      const { root, budget } = context;
      const input = {
        isRunning: false,
        ...(root !== undefined && { root }),
        ...(budget !== undefined && { wallet: budget.wallet }),
      };
      enqueue.spawnChild("slot", { id: "place", input });
    }),
    leavePlace: enqueueActions(({ enqueue }) => {
      enqueue.stopChild("place");
    }),
    // Another child than the place: what is stored of it says to the next node that the task runs already.
    takeSlot: enqueueActions(({ context, enqueue }) => {
      if (context.root === undefined) return;
      enqueue.spawnChild("slot", { id: "slot", input: { root: context.root, isRunning: true } });
    }),
    leaveSlot: enqueueActions(({ context, enqueue }) => {
      if (context.root !== undefined) enqueue.stopChild("slot");
    }),
    passStatusOn: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "conversationStatus") return;
      const { status } = event;
      const wasRunning = context.conversationStatus === "running";
      enqueue.assign({ conversationStatus: status });
      enqueue.emit(announcement(context, STATUS_ANNOUNCEMENT[status]));
      enqueue.sendParent({ type: "taskStatus", childId: context.childId, status });
      // Who waits for a person gives the slot back: an answer may take a week.
      if (context.root === undefined) return;
      if (wasRunning) enqueue.stopChild("slot");
      else if (status === "running") {
        enqueue.spawnChild("slot", { id: "slot", input: { root: context.root, isRunning: true } });
      }
    }),
    noteStopping: assign(({ context, event }, { why }: { why: "cancelled" | "timedOut" | "idle" }) => ({
      stopping: stoppedEnd(why, context, event.type === "cancel" ? event.reason : undefined),
    })),
    noteEnd: assign((moment) => {
      const end = endOf(moment);
      return end === undefined ? {} : { end };
    }),
    /** Its run has ended: whoever delegated it is told, and it may be continued. */
    reportRun: enqueueActions((moment) => {
      const { context, enqueue } = moment;
      const end = endOf(moment) ?? { status: "failed", cause: "internal" };
      const { childId, runs = 0 } = context;
      const next: TaskContext = { ...context, end };
      enqueue.assign({ end, stopping: undefined, asks: undefined, conversationStatus: "running" });
      enqueue.emit(announcement(next, END_ANNOUNCEMENT[end.status]));
      enqueue.sendParent({ type: "taskReported", childId, runs, output: taskOutputOf(next) });
    }),
    passQuestionOn: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "conversationAsked") return;
      const { childId, runs = 0 } = context;
      enqueue.assign({ asks: event.callId });
      enqueue.emit(announcement(context, "taskAsked"));
      enqueue.sendParent({ type: "taskAsked", childId, runs, question: event.question });
    }),
    noteFollowUp: assign(({ context, event }) =>
      event.type === "continueTask" ? { runs: Math.max(context.runs ?? 0, event.runs) } : {},
    ),
    /** A follow-up goes to the same conversation: as the answer it waits for, or as a further message. */
    passFollowUpOn: enqueueActions(({ context, event, enqueue }) => {
      const said = followUpOf(event);
      if (said === undefined) return;
      const { asks } = context;
      if (asks === undefined) enqueue.sendTo("conversation", { type: "userMessage", ...said });
      else enqueue.sendTo("conversation", { type: "parentAnswered", callId: asks, text: said.text });
      enqueue.assign({ asks: undefined });
    }),
    /** A follow-up to a task that has not begun is part of its assignment. */
    addToPrompt: assign(({ context, event }) => {
      const said = followUpOf(event);
      if (said === undefined) return {};
      return { prompt: boundedText(`${context.prompt}\n\n${said.text}`, MAX_MESSAGE_CHARACTERS - 100) };
    }),
    beginRun: enqueueActions(({ context, enqueue }) => {
      enqueue.assign({ end: undefined, conversationStatus: "running" });
      enqueue.emit(announcement({ ...context, end: undefined }, "taskContinued"));
    }),
    noteRelease: assign({ isReleased: true }),
    closeConversation: enqueueActions(({ context, enqueue }) => {
      const isOnlyStopped = context.isKept === true && context.isReleased !== true;
      enqueue.sendTo("conversation", { type: isOnlyStopped ? "stopRun" : "close" });
    }),
  },
});

function followUpOf(event: TaskMachineEvent): { readonly messageId: string; readonly text: string } | undefined {
  if (event.type === "continueTask") return { messageId: `follow-up-${event.runs}`, text: event.prompt };
  return event.type === "followUp" ? { messageId: event.messageId, text: event.text } : undefined;
}

function announcement(context: TaskContext, type: TaskEmitted["type"]): TaskEmitted {
  const { cause, conversationId } = context.end ?? {};
  return {
    type,
    agent: context.subagent.name,
    callId: context.callId,
    ...(cause === undefined ? {} : { cause }),
    ...(conversationId === undefined ? {} : { conversationId }),
  };
}
