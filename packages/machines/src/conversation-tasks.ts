import type { PlainEvent } from "@holdfast/protocol";
import type { Abandonment } from "./call-result.ts";
import type { ConversationContext, StepCall } from "./conversation-context.ts";
import * as turn from "./conversation-turn.ts";
import { nameableTasks, openTasks, withoutReports, type TaskBook } from "./task-book.ts";
import type { TaskInput } from "./task-input.ts";
import { takeNews, taskNewsOf, type WaitingCall } from "./task-news.ts";
import type { TaskStart } from "./task-plan.ts";

// What a conversation does about its tasks, beside the calls that started them. Pure; conversation.machine.ts says when.

type Changes = Partial<ConversationContext>;

/** Something to be sent to a child. */
export interface ToChild {
  readonly to: string;
  readonly event: PlainEvent;
}

/** Source of a task by what becomes of it when its conversation ends first. */
export const TASK_SOURCE = { cancel: "task", await: "task.await", detach: "task.detach" } as const;

/** What a task is started with. */
export function taskInputOf(
  { conversationId, parentTask, budget }: ConversationContext,
  callId: string,
  { childId, task, subagent, agents, depth, maxDepth, isKept, canAsk, isHeld }: TaskStart,
): TaskInput {
  const { prompt, description = "", deadlineMs, idleMs } = task;
  return {
    callId,
    childId,
    subagent,
    agents,
    depth,
    prompt,
    description,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(maxDepth === undefined ? {} : { maxDepth }),
    ...(idleMs === undefined ? {} : { idleMs }),
    ...(parentTask?.wantsPulse === true ? { wantsPulse: true } : {}),
    ...(isKept ? { isKept } : {}),
    ...(canAsk ? { canAsk } : {}),
    ...(isHeld ? { isHeld } : {}),
    ...(budget === undefined ? {} : { budget }),
    // What a task delegates runs on its turn: if it had to wait for one of its own, all turns could be held by those who wait.
    ...(parentTask === undefined ? { root: conversationId } : {}),
  };
}

/** Tasks of a conversation that may run at the same time. */
export const maxRunningOf = ({ agent }: Pick<ConversationContext, "agent">): number =>
  agent.limits.maxRunningTasks ?? Number.POSITIVE_INFINITY;

/** Whether an event is news of a task that can be continued. */
export const isTaskNews = (context: ConversationContext, event: { readonly type: string }): boolean =>
  taskNewsOf(context.tasks ?? [], event) !== undefined;

/** News of a task: what they change, and what its siblings are told. */
export function withTaskNews(
  context: ConversationContext,
  event: { readonly type: string },
): { readonly changes: Changes; readonly messages: readonly ToChild[] } {
  const before = context.tasks ?? [];
  const news = taskNewsOf(before, event);
  if (news === undefined) return { changes: {}, messages: [] };
  const waiting = turn.openCalls(context).flatMap((call): WaitingCall[] => {
    const { callId, childId, name, waits } = call;
    return waits === undefined ? [] : [{ callId, childId, name, waits }];
  });
  const { book, settled, proceed, cancel } = takeNews(before, waiting, news, maxRunningOf(context));
  let { calls } = context;
  for (const { childId, result } of settled) calls = turn.withResult({ ...context, calls }, childId, result);
  if (news.kind === "status") calls = withPersonWaiting(calls, news.childId, news.status !== "running");
  return {
    changes: { tasks: withoutReports(book), calls },
    messages: [
      ...proceed.map((to) => ({ to, event: { type: "proceed" } })),
      ...cancel.map((to) => ({ to, event: { type: "cancel", reason: "the group does not need it any more" } })),
    ],
  };
}

const withPersonWaiting = (
  calls: readonly StepCall[],
  task: string,
  isWaitingForPerson: boolean,
): ConversationContext["calls"] =>
  calls.map((call) => (call.isOpen && taskOfCall(call) === task ? { ...call, isWaitingForPerson } : call));

/** The task that a call waits for; its own when nobody can name it. */
const taskOfCall = ({ kind, childId, waits }: StepCall): string | undefined =>
  waits?.kind === "task" ? waits.task : kind === "delegate" && waits === undefined ? childId : undefined;

/** What tasks are told when the step that waits for them is ended, or everything is. `detach` is left alone by an interrupt. */
export function ordersFor(
  context: ConversationContext,
  why: Exclude<Abandonment, "cancelTask">,
): { readonly messages: readonly ToChild[]; readonly ending: readonly string[] } {
  const book = nameableTasks(context.tasks ?? []); // the others are told by their calls
  if (why === "close") return closingOrders(book);
  if (why === "await") {
    const living = book.flatMap(({ isOver, childId }) => (isOver ? [] : [childId]));
    return { messages: living.map((to) => ({ to, event: { type: "release" } })), ending: living };
  }
  const waitedFor = new Set(turn.openCalls(context).flatMap((call) => tasksOf(call, book)));
  const stopped = openTasks(book).filter(
    ({ childId, onClose }) => waitedFor.has(childId) || (why === "interrupt" && onClose !== "detach"),
  );
  return { messages: stopped.map(({ childId }) => cancelOf(childId, why)), ending: [] };
}

/** Tasks that are stopped when one call is. */
export const ordersForCall = (context: ConversationContext, call: StepCall, reason: string): readonly ToChild[] =>
  tasksOf(call, context.tasks ?? []).map((to) => cancelOf(to, reason));

const cancelOf = (to: string, reason: string): ToChild => ({ to, event: { type: "cancel", reason } });

/** A call that only asked how a task is doing does not own it. */
function tasksOf({ childId, waits }: StepCall, book: TaskBook): readonly string[] {
  if (waits?.kind === "group") return book.filter(({ group }) => group === childId).map((member) => member.childId);
  return waits?.kind === "task" && waits.isOwner ? [waits.task] : [];
}

/** `cancel`: it ends now, and is waited for. `await`, `detach`: it ends when its work is done. */
function closingOrders(book: TaskBook): ReturnType<typeof ordersFor> {
  const living = book.filter(({ isOver }) => !isOver);
  const isEnded = ({ onClose }: (typeof living)[number]): boolean => onClose === "cancel";
  return {
    messages: living.map((entry) => ({
      to: entry.childId,
      event: isEnded(entry) ? { type: "cancel", reason: "close", isFinal: true } : { type: "release" },
    })),
    ending: living.filter(isEnded).map(({ childId }) => childId),
  };
}
