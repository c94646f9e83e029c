import { IDLE_TAG } from "@holdfast/protocol";
import { assign, emit, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import { withoutContent } from "./after-end.ts";
import { planReply } from "./call-plan.ts";
import { answeredResult, type Abandonment } from "./call-result.ts";
import { queueWithout, startableCalls } from "./call-queue.ts";
import { settlementOf } from "./call-settlement.ts";
import { childOutcomeOf } from "./child-outcome.ts";
import { isToAsk, payerOf, questionId, questionOf, withLeave, withRefusal } from "./conversation-budget.ts";
import type { ConversationContext, Rest } from "./conversation-context.ts";
import type { ConversationMachineEvent } from "./conversation-event.ts";
import { conversationGuards } from "./conversation-guards.ts";
import type { ConversationInput } from "./conversation-input.ts";
import type { ConversationOutput } from "./conversation-output.ts";
import {
  callerOf,
  LIMITS,
  modelFailureOf,
  openQuestionOf,
  openWaitOf,
  outputOf,
  replyOf,
} from "./conversation-reading.ts";
import { ordersFor, ordersForCall, TASK_SOURCE, taskInputOf, withTaskNews } from "./conversation-tasks.ts";
import * as turn from "./conversation-turn.ts";
import type { ConversationEmitted } from "./emitted-event.ts";
import { descriptionOf } from "./describe-conversation.ts";
import type { ModelJobInput, ToolJobInput } from "./job-input.ts";
import type { OwnerWaitMachineEvent } from "./owner-wait-event.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import type { OwnerWaitOutput } from "./owner-wait-output.ts";
import { actorOfOwn, suppliedByNode } from "./placeholder.machine.ts";
import { NUDGES } from "./stuck-detection.ts";
import { withoutReports } from "./task-book.ts";
import type { TaskMachineEvent } from "./task-event.ts";
import type { TaskInput } from "./task-input.ts";
import { outputResult } from "./task-news.ts";
import type { TaskOutput } from "./task-output.ts";

/** Time for told children to end by themselves when a conversation closes. */
const CLOSING_GRACE_MS = 30_000;
const WITHDRAWN = "its call was ended";

/** Types, children, delays, guards and actions of the conversation machine. */
export const conversationSetup = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as ConversationContext,
    input: {} as z.input<typeof ConversationInput>,
    events: {} as ConversationMachineEvent,
    output: {} as ConversationOutput,
    emitted: {} as ConversationEmitted,
    tags: IDLE_TAG,
  },
  actors: {
    "model.generate": suppliedByNode<unknown, ModelJobInput>(),
    "tool.run.idempotent": suppliedByNode<unknown, ToolJobInput>(),
    "tool.run.dedupeKey": suppliedByNode<unknown, ToolJobInput>(),
    "tool.run.unsafe": suppliedByNode<unknown, ToolJobInput>(),
    // Three names of one actor type: what becomes of a task when its conversation ends first is a property of its source.
    task: actorOfOwn<TaskInput, TaskOutput, TaskMachineEvent>(),
    "task.await": actorOfOwn<TaskInput, TaskOutput, TaskMachineEvent>(),
    "task.detach": actorOfOwn<TaskInput, TaskOutput, TaskMachineEvent>(),
    ownerWait: actorOfOwn<OwnerWaitInput, OwnerWaitOutput, OwnerWaitMachineEvent>(),
  },
  delays: {
    turnTime: ({ context }) => context.agent.limits.maxTurnMs,
    closingGrace: CLOSING_GRACE_MS,
  },
  guards: conversationGuards,
  actions: {
    announce: emit(({ context }, { type }: { type: Exclude<ConversationEmitted["type"], "waitConsumed"> }) => {
      const isFailure = type === "conversationError" || type === "conversationStuck";
      const cause = isFailure && context.lastFailure !== undefined ? { cause: context.lastFailure.cause } : {};
      return { type, agent: context.agent.name, ...cause };
    }),
    announceRunning: enqueueActions(({ context, enqueue }) => {
      if (context.isContinued === true) enqueue.assign({ isContinued: false });
      else enqueue.emit({ type: "conversationRunning", agent: context.agent.name });
    }),
    /** What comes next is no beginning for whoever reads public events. */
    noteContinued: assign({ isContinued: true }),
    reportToTask: enqueueActions(({ context, enqueue }, { status }: { status: ConversationContext["reported"] }) => {
      if (context.parentTask === undefined || context.reported === status) return;
      enqueue.assign({ reported: status });
      enqueue.sendParent({ type: "conversationStatus", status });
    }),
    /** Somebody above has an idle limit. */
    tellPulse: enqueueActions(({ context, enqueue }) => {
      if (context.parentTask?.wantsPulse === true) enqueue.sendParent({ type: "conversationActive" });
    }),
    acceptMessage: assign(({ context, event }) =>
      event.type === "userMessage" ? turn.withMessage(context, event.messageId) : {},
    ),
    describe: assign(({ event }) => (event.type === "describe" ? descriptionOf(event) : {})),
    switchModel: assign(({ context, event }) =>
      event.type === "switchModel" ? { agent: { ...context.agent, model: event.model } } : {},
    ),
    noteFork: assign(({ context, event }) =>
      event.type === "forked" ? { forks: [...(context.forks ?? []), event.fork] } : {},
    ),
    // What is left says who it was; the journal goes once nobody needs it.
    noteDeletion: assign(({ context }) => withoutContent(context)),
    requestCondense: assign({ isCondenseRequested: true }),
    callCondenser: enqueueActions(({ context, enqueue }) => {
      const { agent, iteration, messagesTaken } = context;
      const usage = { ...context.usage, modelCalls: context.usage.modelCalls + 1 };
      enqueue.assign({ usage, isCondenseRequested: false, fill: undefined });
      enqueue.spawnChild("model.generate", {
        id: turn.runningCondenser({ ...context, usage }),
        input: { agent, iteration, messagesTaken, purpose: "condense", ...paidBy(context) },
      });
    }),
    takeCondensation: assign(({ context, event }) => {
      const outcome = childOutcomeOf(event);
      const reply = outcome?.kind === "done" ? turn.tryModelReply(outcome.output) : undefined;
      return reply === undefined ? {} : turn.costOf(context, reply);
    }),
    dropCondensation: enqueueActions(({ context, enqueue }) => enqueue.stopChild(turn.runningCondenser(context))),
    noteRest: assign((_, { rest }: { rest: Rest }) => ({ rest })),
    requestPause: assign({ isPauseRequested: true }),
    dropPauseRequest: assign({ isPauseRequested: false }),
    notePausedBy: assign((_, { by }: { by: ConversationContext["pausedBy"] }) => ({ pausedBy: by })),
    renewAllowance: assign({ iteration: 0, ...turn.FULL_ALLOWANCE }),
    noteNudge: assign(({ context }) => turn.withNudge(context)),
    callModel: enqueueActions(({ context, enqueue }) => {
      const next = turn.withModelCall(context);
      const nudge = turn.runningNudge(next);
      enqueue.assign({ ...next, isRunOpen: true });
      enqueue.spawnChild("model.generate", {
        id: turn.runningModelChild(next),
        input: {
          agent: next.agent,
          iteration: next.iteration,
          messagesTaken: next.messagesTaken,
          ...(nudge !== undefined && { nudge: NUDGES[nudge] }),
          ...paidBy(next),
        },
      });
    }),
    takeReply: enqueueActions(({ context, event, enqueue }) => {
      const reply = replyOf({ context, event });
      if (reply === undefined) return;
      const { calls, tasks, released } = planReply(context.usage.modelCalls, reply, callerOf(context));
      enqueue.assign({
        ...turn.withReply(context, reply, calls),
        ...(tasks.length > 0 && { tasks: withoutReports(tasks) }),
      });
      for (const childId of released) enqueue.sendTo(childId, { type: "release" });
      const { conversationId, agent } = context;
      for (const { callId, childId, plan } of calls) {
        if (plan.kind === "tasks") {
          const { starts, message, waitMs } = plan;
          for (const start of starts) {
            enqueue.spawnChild(TASK_SOURCE[start.onClose], {
              id: start.childId,
              input: taskInputOf(context, callId, start),
            });
          }
          if (message !== undefined) enqueue.sendTo(message.to, message.event);
          if (waitMs !== undefined) enqueue.raise({ type: "taskWaitOver", childId }, { id: childId, delay: waitMs });
        } else if (plan.kind === "ask") {
          const wait = { ...plan.question, conversationId, agent: agent.name, callId, childId };
          enqueue.spawnChild("ownerWait", { id: childId, input: wait });
        } else if (plan.kind === "askParent") {
          enqueue.sendParent({ type: "conversationAsked", callId, question: plan.question });
        }
      }
    }),
    startTools: enqueueActions(({ context, enqueue }) => {
      const started = startableCalls(context);
      if (started.length === 0) return;
      enqueue.assign({ queue: queueWithout(context, started) });
      for (const { childId, ...call } of started) {
        const input = { agent: context.agent.name, ...call };
        enqueue.spawnChild(`tool.run.${call.crashPolicy}`, { id: childId, input });
      }
    }),
    noteRefusal: assign(withRefusal),
    takeLeave: assign(withLeave),
    askForBudget: enqueueActions(({ context, enqueue }) => {
      if (!isToAsk(context)) return;
      const budgetQuestion = questionId(context);
      enqueue.assign({ budgetQuestion });
      enqueue.spawnChild("ownerWait", { id: budgetQuestion, input: questionOf(context) });
    }),
    withdrawBudgetQuestion: enqueueActions(({ context, enqueue }) => {
      const { budgetQuestion, ending } = context;
      if (budgetQuestion === undefined) return;
      enqueue.sendTo(budgetQuestion, { type: "cancel", reason: "it goes on otherwise" });
      enqueue.assign({ budgetQuestion: undefined, ending: [...ending, budgetQuestion] });
    }),
    noteModelFailure: assign((arg) => ({ lastFailure: modelFailureOf(arg) })),
    noteLimit: assign(({ context }, { limit }: { limit: keyof typeof LIMITS }) => ({
      lastFailure: LIMITS[limit](context),
    })),
    settleCall: enqueueActions(({ context, event, enqueue }) => {
      const settlement = settlementOf({ context, event });
      if (settlement === undefined) return;
      const { changes, messages, question, again, consumed } = settlement;
      enqueue.assign(changes);
      if (question !== undefined) enqueue.spawnChild("ownerWait", question);
      if (again !== undefined) enqueue.spawnChild("tool.run.unsafe", again);
      if (consumed !== undefined) enqueue.emit({ type: "waitConsumed", ...consumed });
      for (const { to, event: told } of messages) enqueue.sendTo(to, told);
    }),
    /** Nothing else of the step is waited for: answers are taken in from now on. */
    tellAwaited: enqueueActions(({ context, enqueue }) => {
      for (const { kind, childId, doubt } of turn.openCalls(context)) {
        if (kind === "ask") enqueue.sendTo(childId, { type: "awaited" });
        if (doubt !== undefined) enqueue.sendTo(doubt.question, { type: "awaited" });
      }
    }),
    // A settled child stays among the children until it is stopped, and the record grows with every call.
    forgetChild: enqueueActions(({ context, event, enqueue }) => {
      const childId = childOutcomeOf(event)?.childId;
      if (childId === undefined) return;
      enqueue.stopChild(childId);
      enqueue.assign({ ending: context.ending.filter((one) => one !== childId) });
      if (context.budgetQuestion === childId) enqueue.assign({ budgetQuestion: undefined });
    }),
    noteTaskStatus: assign(({ context, event }) =>
      event.type === "taskStatus" ? turn.withTaskStatus(context, event.childId, event.status !== "running") : {},
    ),
    noteTaskNews: enqueueActions(({ context, event, enqueue }) => {
      const { changes, messages } = withTaskNews(context, event);
      enqueue.assign(changes);
      for (const { to, event: told } of messages) enqueue.sendTo(to, told);
    }),
    /** A call has waited for a task as long as it wanted: it is told how far that is. */
    endTaskWait: assign(({ context, event }) => {
      const call = event.type === "taskWaitOver" ? openWaitOf(context, event.childId) : undefined;
      if (call?.waits?.kind !== "task") return {};
      const result = outputResult(call, context.tasks ?? [], call.waits.task);
      return { calls: turn.withResult(context, call.childId, result) };
    }),
    takeParentAnswer: assign(({ context, event }) => {
      const call = event.type === "parentAnswered" ? openQuestionOf(context, event.callId) : undefined;
      if (call === undefined || event.type !== "parentAnswered") return {};
      return { calls: turn.withResult(context, call.childId, answeredResult(call, event.text)) };
    }),
    /** Tells a task that takes follow-ups how its run ended; everybody else learns it otherwise. */
    reportRun: enqueueActions(({ context, enqueue }, { outcome }: { outcome: ConversationContext["outcome"] }) => {
      if (context.parentTask?.isKept !== true) return;
      if (context.isRunOpen !== true && outcome !== "closed") return;
      const ended = { ...context, outcome };
      enqueue.assign({ outcome, reported: "running", isRunOpen: false });
      enqueue.sendParent({ type: "conversationReported", output: outputOf(ended) });
    }),
    closeStep: assign(({ context }) => turn.withStepOver(context)),
    cancelCall: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "cancelTask") return;
      const { callId, reason = "cancelled by a person" } = event;
      const ended = turn.openCalls(context).filter((call) => call.callId === callId);
      for (const call of ended) {
        const { kind, childId, doubt } = call;
        if (doubt !== undefined) enqueue.sendTo(doubt.question, { type: "cancel", reason: WITHDRAWN });
        else if (kind === "local") enqueue.stopChild(childId);
        else if (turn.isEndedByItself(call)) enqueue.sendTo(childId, { type: "cancel", reason });
        for (const { to, event } of ordersForCall(context, call, reason)) enqueue.sendTo(to, event);
      }
      enqueue.assign(turn.withCallsEnded(context, ended, false));
    }),
    abandonStep: enqueueActions(({ context, enqueue }, { why }: { why: Exclude<Abandonment, "cancelTask"> }) => {
      enqueue.stopChild(turn.runningModelChild(context));
      enqueue.stopChild(turn.runningCondenser(context));
      const ended = turn.openCalls(context);
      for (const call of ended) {
        const { kind, childId, doubt } = call;
        if (doubt !== undefined) enqueue.sendTo(doubt.question, { type: "cancel", reason: WITHDRAWN });
        else if (kind === "local") enqueue.stopChild(childId);
        else if (why !== "await" && turn.isEndedByItself(call)) {
          enqueue.sendTo(childId, { type: "cancel", reason: why });
        }
      }
      const { messages, ending } = ordersFor(context, why);
      for (const { to, event } of messages) enqueue.sendTo(to, event);
      const changes = turn.withCallsEnded(context, ended, true);
      enqueue.assign({ ...changes, ending: [...changes.ending, ...ending] });
    }),
    noteOutcome: assign((_, { outcome }: { outcome: ConversationContext["outcome"] }) => ({ outcome })),
  },
});

const paidBy = (context: ConversationContext): Pick<ModelJobInput, "payer"> => {
  const payer = payerOf(context);
  return payer === undefined ? {} : { payer };
};
