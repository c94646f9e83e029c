import type { ToolResult } from "@holdfast/protocol";
import { z } from "zod";
import type { NamedCall } from "./call-result.ts";
import { childOutcomeOf } from "./child-outcome.ts";
import { groupVerdict, GroupMode } from "./group-verdict.ts";
import { openTasks, taskNamed, withEntry, withoutPastPlain, withTurns, type TaskBook } from "./task-book.ts";
import { brokenOutput, reportedOutput, reportResult, toldResult, type ReportedTask } from "./task-report.ts";

// What news of a task changes: in the book, and for the calls that wait for it. Machine and transcript both take it from here.
//   N1 a call that sent the n-th follow-up is not settled by how an earlier run ended
//   N2 a task that is over settles every call that waits for it
//   N3 a member of a group settles on its own; the call of the group when its mode says so, then the others are stopped

/** What a call waits for. */
export const TaskWait = z.discriminatedUnion("kind", [
  /** One task, and of it a run that knows this many follow-ups. */
  z.object({
    kind: z.literal("task"),
    task: z.string(),
    runs: z.number(),
    /** Ending the call stops the task. */
    isOwner: z.boolean(),
  }),
  z.object({ kind: z.literal("group"), mode: GroupMode, quorum: z.number() }),
]);
export type TaskWait = Readonly<z.infer<typeof TaskWait>>;

/** An open call that waits for tasks. */
export interface WaitingCall extends NamedCall {
  readonly childId: string;
  readonly waits: TaskWait;
}

/** Something that became known of a task. */
type TaskNews =
  | { readonly kind: "report"; readonly childId: string; readonly report: ReportedTask; readonly runs: number }
  | { readonly kind: "over"; readonly childId: string; readonly report: ReportedTask }
  | { readonly kind: "status"; readonly childId: string; readonly status: "running" | "waiting" | "held" };

const Reported = z.object({ childId: z.string(), runs: z.number(), output: z.unknown() });
const Asked = z.object({ childId: z.string(), runs: z.number(), question: z.string() });
const Status = z.object({ childId: z.string(), status: z.enum(["running", "waiting", "held"]) });

/** Whether an event is the end of a plain task: the call that started it has another result than those of tasks that can be named. */
export const isPlainEnd = (book: TaskBook, event: { readonly type: string }): boolean => {
  const news = taskNewsOf(book, event);
  return news?.kind === "over" && taskNamed(book, news.childId)?.isPlain === true;
};

/** Reads news of a task in the book out of an event; undefined when the event is none. */
export function taskNewsOf(book: TaskBook, event: { readonly type: string }): TaskNews | undefined {
  const news = readNews(event);
  return news !== undefined && taskNamed(book, news.childId) !== undefined ? news : undefined;
}

function readNews(event: { readonly type: string }): TaskNews | undefined {
  const outcome = childOutcomeOf(event);
  if (outcome !== undefined) {
    const { childId } = outcome;
    const output =
      outcome.kind === "done" ? reportedOutput(childId, outcome.output) : brokenOutput(childId, outcome.error);
    return { kind: "over", childId, report: { kind: "ended", output } };
  }
  if (event.type === "taskReported") {
    const { data } = Reported.safeParse(event);
    if (data === undefined) return undefined;
    const { childId, runs } = data;
    return { kind: "report", childId, runs, report: { kind: "ended", output: reportedOutput(childId, data.output) } };
  }
  if (event.type === "taskAsked") {
    const { data } = Asked.safeParse(event);
    if (data === undefined) return undefined;
    return { kind: "report", ...data, report: { kind: "asks", question: data.question } };
  }
  const { data } = event.type === "taskStatus" ? Status.safeParse(event) : {};
  return data === undefined ? undefined : { kind: "status", ...data };
}

export interface NewsChanges {
  readonly book: TaskBook;
  readonly settled: readonly { readonly childId: string; readonly result: ToolResult }[];
  /** Tasks whose turn it is. */
  readonly proceed: readonly string[];
  /** Members of a group that are no longer wanted. */
  readonly cancel: readonly string[];
}

/** @param maxRunning  tasks of the conversation that may run at the same time */
export function takeNews(
  before: TaskBook,
  calls: readonly WaitingCall[],
  news: TaskNews,
  maxRunning: number,
): NewsChanges {
  const { childId } = news;
  const entry = taskNamed(before, childId);
  if (entry === undefined) return { book: before, settled: [], proceed: [], cancel: [] };
  if (news.kind === "status") {
    const { status } = news;
    // Somebody else answered what it asked.
    const isAsking = entry.isAsking && status !== "running";
    return { book: withEntry(before, childId, { status, isAsking }), settled: [], proceed: [], cancel: [] };
  }
  // A task that is let go after it had reported tells its last end again, which is known.
  const isKnown = news.kind === "over" && openTasks(before).every((open) => open.childId !== childId);
  const { report } = news;
  const known = withEntry(before, childId, {
    ...(isKnown ? {} : { report, status: report.kind === "asks" ? "waiting" : report.output.status }),
    isAsking: report.kind === "asks",
    isOver: news.kind === "over",
    isHeld: false,
  });
  const runs = news.kind === "over" ? Number.POSITIVE_INFINITY : news.runs; // N2
  const settled: { readonly childId: string; readonly result: ToolResult }[] = [];
  const cancel: string[] = [];
  for (const call of calls) {
    if (call.waits.kind === "task") {
      if (call.waits.task === childId && call.waits.runs <= runs) {
        settled.push({ childId: call.childId, result: reportResult(call, childId, report) }); // N1
      }
    } else if (entry.group === call.childId) {
      const verdict = groupVerdict(call, call.waits, known);
      if (verdict === undefined) continue;
      settled.push({ childId: call.childId, result: verdict.result }); // N3
      cancel.push(...verdict.losers);
    }
  }
  return { ...withTurns(withoutPastPlain(known), maxRunning), settled, cancel };
}

/** The result of `task_output` now: how the task ended, what it asks, or what it is doing. */
export function outputResult(call: NamedCall, book: TaskBook, childId: string): ToolResult {
  const entry = taskNamed(book, childId);
  const report = entry?.report;
  const isCurrent = entry !== undefined && (entry.isAsking || !openTasks([entry]).length);
  if (isCurrent && report !== undefined) return reportResult(call, childId, report);
  return toldResult(call, { taskId: childId, status: entry?.status ?? "lost" });
}
