import type { PlainEvent, ToolResult, TranscriptMessage } from "@holdfast/protocol";
import { outcomeToResult } from "./call-outcome.ts";
import { doubtfulResult, doubtOf, verdictOn, type Doubt } from "./call-doubt.ts";
import { knownResultOf, planReply, type PlannedCall } from "./call-plan.ts";
import { abandonedResult, answeredResult, errorResult, type Abandonment } from "./call-result.ts";
import { childOutcomeOf, type ChildOutcome } from "./child-outcome.ts";
import { sharedMessages } from "./conversation-context.ts";
import { ConversationInput, PROMPT_MESSAGE_ID } from "./conversation-input.ts";
import { callerBelow } from "./conversation-reading.ts";
import { isPlainEnd, outputResult, takeNews, taskNewsOf, type WaitingCall } from "./task-news.ts";
import type { Caller } from "./task-plan.ts";
import { z } from "zod";
import { NUDGES } from "./stuck-detection.ts";
import { tryCondenserId, tryModelChildId, tryModelReply } from "./conversation-turn.ts";

// The transcript of a conversation, read out of its journal.
//   T1 an assistant message with tool calls is followed by one tool message with one result per call, in call order
//   T2 the order in which results arrived leaves no trace
//   T3 a user message stands after the replies that were given without knowing it, and before all others
//   T4 every user message stands once, in the order of acceptance
//   T5 a summary stands for everything that was shown to a model before it; the journal keeps it all

type UserMessage = Extract<TranscriptMessage, { role: "user" }>;

interface Fold {
  caller: Caller;
  readonly messages: TranscriptMessage[];
  /** User messages not yet placed, and the number of those that are. */
  waiting: readonly UserMessage[];
  placed: number;
  calls: readonly PlannedCall[];
  readonly results: Map<string, ToolResult>;
  /** Call → what is not known of it. */
  readonly doubts: Map<string, { readonly doubt: Doubt; readonly asked: number; readonly isOpen: boolean }>;
}

/**
 * The messages of a conversation, as a model may be given them.
 *
 * @param events     the applied events of its journal, from the first, in order of revision
 * @param inherited  what it shares with the conversation it was forked from, by {@link inheritedTranscript}
 * @param messagesTaken  user messages that a model call is to be shown; default: all. A call that is made again reads a journal that has grown
 * @returns messages that every provider accepts as a history whenever a model call is running or about to; while calls
 *   are open, the last tool message holds the results there are so far
 */
export function foldTranscript(
  events: readonly PlainEvent[],
  inherited: readonly TranscriptMessage[] = [],
  messagesTaken: number = Number.POSITIVE_INFINITY,
): readonly TranscriptMessage[] {
  const fold = foldOf(events, inherited);
  settleDoubts(fold);
  closeStep(fold);
  return [...fold.messages, ...fold.waiting.slice(0, Math.max(0, messagesTaken - fold.placed))];
}

/**
 * What a fork shares with its origin: the messages up to the place of the fork. Calls that were open there have no result of their own in the
 * fork: their tasks, questions and jobs belong to the origin (F53).
 *
 * @param events  the applied events of the origin's journal, up to and including the revision of the fork
 */
export function inheritedTranscript(
  events: readonly PlainEvent[],
  inherited: readonly TranscriptMessage[] = [],
): readonly TranscriptMessage[] {
  const fold = foldOf(events, inherited);
  settleDoubts(fold);
  for (const call of openCallsOf(fold)) settle(fold, call, errorResult(call, LOST_TO_FORK));
  closeStep(fold);
  return [...fold.messages, ...fold.waiting];
}

function foldOf(events: readonly PlainEvent[], inherited: readonly TranscriptMessage[]): Fold {
  const fold: Fold = {
    caller: { agent: NO_AGENT, agents: {}, depth: 0 },
    messages: [...inherited],
    waiting: [],
    placed: 0,
    calls: [],
    results: new Map(),
    doubts: new Map(),
  };
  for (const event of events) apply(fold, event);
  return fold;
}

const NO_AGENT: Caller["agent"] = {
  name: "none",
  model: "none",
  instructions: "",
  tools: [],
  delegates: [],
  limits: { maxIterations: 1, maxTurnMs: 1000 },
};

// What the machine has accepted stands in the transcript, also where today's rules for senders are stricter.
const AcceptedMessage = z.looseObject({ messageId: z.string(), text: z.string() });
const AcceptedCancel = z.looseObject({ callId: z.string(), reason: z.string().optional() });

const LOST_TO_FORK = {
  cause: "cancel",
  code: "HF-5203",
  message: "lost to fork: this conversation was forked while the call was open. It may have had effects.",
} as const;
const TaskWaitOver = z.looseObject({ childId: z.string() });
const ParentAnswer = z.looseObject({ callId: z.string(), text: z.string() });

const NO_RESULT = { cause: "internal", code: "HF-5103", message: "No result of this call was recorded." } as const;

function apply(fold: Fold, event: PlainEvent): void {
  const isEnd = isPlainEnd(fold.caller.tasks ?? [], event);
  if (applyTaskNews(fold, event) && !isEnd) return;
  const outcome = childOutcomeOf(event);
  if (outcome !== undefined) {
    const condenser = tryCondenserId(outcome.childId);
    if (condenser !== undefined) {
      if (outcome.kind === "done") condense(fold, condenser.modelCall, outcome.output);
      return;
    }
    const model = tryModelChildId(outcome.childId);
    if (model !== undefined) {
      if (outcome.kind === "done") applyReply(fold, model, outcome.output);
      return;
    }
    if (applyDoubt(fold, outcome)) return;
    const call = fold.calls.find((call) => call.childId === outcome.childId);
    const kind = call?.plan.kind === "tasks" ? "delegate" : call?.plan.kind;
    if (call === undefined || kind === undefined || kind === "refused" || kind === "askParent") return;
    settle(fold, call, outcomeToResult({ ...call, kind }, outcome));
    return;
  }
  if (event.type === "xstate.init") applyStart(fold, event["input"]);
  else if (event.type.startsWith("xstate.after.turnTime.")) abandon(fold, "turnTime");
  else applyOutside(fold, event);
}

/** @returns whether the outcome leaves in doubt whether its call happened, or is of a question about that */
function applyDoubt(fold: Fold, outcome: ChildOutcome): boolean {
  for (const call of openCallsOf(fold)) {
    const known = fold.doubts.get(call.callId);
    if (known?.isOpen === true && known.doubt.question === outcome.childId) {
      const verdict = verdictOn(call, known.doubt, outcome);
      if (verdict === "run") fold.doubts.set(call.callId, { ...known, isOpen: false });
      else settle(fold, call, verdict);
      return true;
    }
    const isUnsafe = call.plan.kind === "local" && call.plan.crashPolicy === "unsafe";
    if (!isUnsafe || call.childId !== outcome.childId || known?.isOpen === true) continue;
    const asked = known?.asked ?? 0;
    const doubt = doubtOf(call.childId, asked, outcome);
    if (doubt === undefined) continue;
    fold.doubts.set(call.callId, { doubt, asked: asked + 1, isOpen: true });
    return true;
  }
  return false;
}

/** What is still in doubt is told so. Also where nobody was asked: former builds took the outcome for a result. */
function settleDoubts(fold: Fold): void {
  for (const call of openCallsOf(fold)) {
    const known = fold.doubts.get(call.callId);
    if (known?.isOpen === true) settle(fold, call, doubtfulResult(call, known.doubt));
  }
}

/** @returns whether it was news of a task that can be continued */
function applyTaskNews(fold: Fold, event: PlainEvent): boolean {
  const { tasks = [], agent } = fold.caller;
  const news = taskNewsOf(tasks, event);
  if (news === undefined) return false;
  const waiting = openCallsOf(fold).flatMap((call): WaitingCall[] => {
    const { callId, childId, name, plan } = call;
    return plan.kind === "tasks" && plan.waits !== undefined ? [{ callId, childId, name, waits: plan.waits }] : [];
  });
  const { maxRunningTasks = Number.POSITIVE_INFINITY } = agent.limits;
  const { book, settled } = takeNews(tasks, waiting, news, maxRunningTasks);
  fold.caller = { ...fold.caller, tasks: book };
  for (const { childId, result } of settled) {
    const call = fold.calls.find((one) => one.childId === childId);
    if (call !== undefined) settle(fold, call, result);
  }
  return true;
}

function applyStart(fold: Fold, input: unknown): void {
  const parsed = ConversationInput.safeParse(input);
  if (!parsed.success) return;
  const { agent, agents, parentTask, prompt, fork } = parsed.data;
  fold.placed = sharedMessages(fork); // they stand in what is inherited
  fold.caller = { agent, agents, ...callerBelow(parentTask) };
  if (prompt !== undefined) accept(fold, PROMPT_MESSAGE_ID, prompt);
}

function applyOutside(fold: Fold, event: PlainEvent): void {
  if (event.type === "interrupt" || event.type === "close") abandon(fold, event.type);
  if (event.type === "delete") abandon(fold, "await");
  if (event.type === "stopRun") abandon(fold, "interrupt");
  const over = event.type === "taskWaitOver" ? TaskWaitOver.safeParse(event).data : undefined;
  const waiting = over && openCallsOf(fold).find((call) => call.childId === over.childId);
  if (waiting?.plan.kind === "tasks" && waiting.plan.waits?.kind === "task") {
    settle(fold, waiting, outputResult(waiting, fold.caller.tasks ?? [], waiting.plan.waits.task));
  }
  const answer = event.type === "parentAnswered" ? ParentAnswer.safeParse(event).data : undefined;
  const asked = answer && openCallsOf(fold).find((call) => call.callId === answer.callId);
  if (asked?.plan.kind === "askParent" && answer !== undefined) {
    settle(fold, asked, answeredResult(asked, answer.text));
  }
  const message = event.type === "userMessage" ? AcceptedMessage.safeParse(event).data : undefined;
  if (message !== undefined) accept(fold, message.messageId, message.text);
  const cancel = event.type === "cancelTask" ? AcceptedCancel.safeParse(event).data : undefined;
  const call = cancel && fold.calls.find((call) => call.callId === cancel.callId);
  const doubted = call && fold.doubts.get(call.callId);
  if (call !== undefined) {
    const inDoubt = doubted?.isOpen === true ? doubtfulResult(call, doubted.doubt) : undefined;
    settle(fold, call, inDoubt ?? abandonedResult(call, "cancelTask", cancel?.reason, taskOf(call)));
  }
}

/** A summary replaces what it was made of, when it is any shorter. Messages that waited meanwhile are not in it. */
function condense(fold: Fold, modelCall: number, output: unknown): void {
  const text = tryModelReply(output)?.text.trim() ?? "";
  const summary = { role: "user", messageId: `summary-${modelCall}`, text: `${SUMMARY_HEAD}\n${text}` } as const;
  if (text === "" || summary.text.length >= JSON.stringify(fold.messages).length) return;
  fold.messages.splice(0, fold.messages.length, summary);
}

const SUMMARY_HEAD = "Summary of this conversation so far:";

function accept(fold: Fold, messageId: string, text: string): void {
  fold.waiting = [...fold.waiting, { role: "user", messageId, text }];
}

function applyReply(fold: Fold, model: NonNullable<ReturnType<typeof tryModelChildId>>, output: unknown): void {
  const reply = tryModelReply(output);
  if (reply === undefined) return;
  // A model is called only when every call has its result; a journal with a hole in it must not spoil the history (T1).
  settleDoubts(fold);
  for (const call of openCallsOf(fold)) settle(fold, call, errorResult(call, NO_RESULT));
  const known = Math.max(0, model.messagesTaken - fold.placed);
  const seen = fold.waiting.slice(0, known);
  fold.messages.push(...seen);
  fold.placed += seen.length;
  fold.waiting = fold.waiting.slice(known);
  const { calls, tasks } = planReply(model.modelCall, reply, fold.caller);
  fold.caller = { ...fold.caller, tasks };
  // Providers refuse an assistant message with neither text nor calls.
  if (reply.text === "" && calls.length === 0) return;
  if (model.nudge !== undefined)
    fold.messages.push({ role: "user", messageId: `nudge-${model.modelCall}`, text: NUDGES[model.nudge] });
  const toolCalls = calls.map(({ callId, name, input }) => ({ callId, name, input }));
  fold.messages.push({ role: "assistant", text: reply.text, toolCalls });
  fold.calls = calls;
  for (const call of calls) {
    const known = knownResultOf(call);
    if (known !== undefined) settle(fold, call, known);
  }
}

// The first result of a call counts (an outcome may arrive after its call was cancelled).
function settle(fold: Fold, call: PlannedCall, result: ToolResult): void {
  if (!fold.results.has(call.callId)) fold.results.set(call.callId, result);
  if (fold.results.size === fold.calls.length) closeStep(fold);
}

function abandon(fold: Fold, why: Abandonment): void {
  settleDoubts(fold);
  for (const call of openCallsOf(fold)) settle(fold, call, abandonedResult(call, why, undefined, taskOf(call)));
}

/** A task whose run was ended with the call can be continued. */
const taskOf = ({ plan }: PlannedCall): Readonly<Record<string, unknown>> =>
  plan.kind === "tasks" && plan.waits?.kind === "task" ? { taskId: plan.waits.task } : {};

const openCallsOf = (fold: Fold): readonly PlannedCall[] => fold.calls.filter((call) => !fold.results.has(call.callId));

function closeStep(fold: Fold): void {
  const results = fold.calls.flatMap((call) => fold.results.get(call.callId) ?? []);
  if (results.length > 0) fold.messages.push({ role: "tool", results });
  fold.calls = [];
  fold.results.clear();
  fold.doubts.clear();
}
