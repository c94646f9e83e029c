import { hash128, ModelReply, type ToolResult } from "@holdfast/protocol";
import { boundedText } from "./bounded-text.ts";
import type { Doubt } from "./call-doubt.ts";
import { knownResultOf, type PlannedCall } from "./call-plan.ts";
import { queueWithout, toolCallsOf } from "./call-queue.ts";
import {
  MAX_PENDING_MESSAGES,
  pendingMessages,
  type ConversationContext,
  type StepCall,
} from "./conversation-context.ts";
import { failureOf, type Failure } from "./failure.ts";
import {
  STUCK_PATTERNS,
  stuckPatternOf,
  stuckRules,
  withStep,
  type StepTrace,
  type StuckPattern,
} from "./stuck-detection.ts";
import { NOTHING_SPENT, spentWith } from "./turn-budget.ts";

// The bookkeeping of a turn: what each event makes of the context. Pure; conversation.machine.ts says when.

type Changes = Partial<ConversationContext>;

/**
 * Name of the child that makes a model call: `model-<number of the call>-<messages the model has been shown>`, and what it was told besides.
 * Who reads the journal learns from it what a reply answers, without knowing when the call was started.
 */
const modelChildId = (modelCall: number, messagesTaken: number, nudge?: StuckPattern): string =>
  `model-${modelCall}-${messagesTaken}${nudge === undefined ? "" : `-${nudge}`}`;

const MODEL_CHILD = new RegExp(`^model-(\\d+)-(\\d+)(?:-(${STUCK_PATTERNS.join("|")}))?$`);

interface ModelChild {
  readonly modelCall: number;
  readonly messagesTaken: number;
  readonly nudge: StuckPattern | undefined;
}

/** Reads a {@link modelChildId}; undefined for other children. */
export function tryModelChildId(childId: string): ModelChild | undefined {
  const [, modelCall, messagesTaken, said] = MODEL_CHILD.exec(childId) ?? [];
  if (modelCall === undefined) return undefined;
  const nudge = STUCK_PATTERNS.find((pattern) => pattern === said);
  return { modelCall: Number(modelCall), messagesTaken: Number(messagesTaken), nudge };
}

const NO_NUDGE: ConversationContext["nudge"] = { pattern: "repeats", modelCall: 0 };

/** Whether it was told that it goes round in circles since a person last said something. */
export const isNudged = ({ nudge }: Pick<ConversationContext, "nudge">): boolean => (nudge?.modelCall ?? 0) > 0;

/** What the running model call is told besides the transcript; undefined in most of them. */
export const runningNudge = ({ nudge, usage }: ConversationContext): StuckPattern | undefined =>
  isNudged({ nudge }) && nudge?.modelCall === usage.modelCalls ? nudge.pattern : undefined;

/** The model call that runs in state `thinking`. */
export const runningModelChild = (context: ConversationContext): string =>
  modelChildId(context.usage.modelCalls, context.messagesTaken, runningNudge(context));

/** The child that condenses the past in state `condensing`; named like a model call, and numbered with them. */
export const runningCondenser = ({ usage, messagesTaken }: ConversationContext): string =>
  `condense-${usage.modelCalls}-${messagesTaken}`;

/** Reads the name of a condensation; undefined for other children. */
export function tryCondenserId(childId: string): ModelChild | undefined {
  return childId.startsWith("condense-") ? tryModelChildId(childId.replace("condense", "model")) : undefined;
}

/** What the model reads has grown beyond what its agent wants. A condensation that came to nothing is tried again after the next model call. */
export const isFull = ({ fill = 0, agent }: ConversationContext): boolean =>
  fill >= (agent.limits.condenseAboveTokens ?? Number.POSITIVE_INFINITY);

/** A message is accepted: it waits for the next model call. */
export function withMessage(context: ConversationContext, messageId: string): Changes {
  const messageIds = [...context.messageIds, messageId].slice(-MAX_PENDING_MESSAGES);
  return { messages: context.messages + 1, messageIds };
}

/** What is counted since a person last said something. */
export const FULL_ALLOWANCE = { steps: [], nudge: NO_NUDGE, spent: NOTHING_SPENT };

/** The next model call starts and takes in every message that waits. Messages of a person renew the allowance. */
export function withModelCall(context: ConversationContext): ConversationContext {
  const isRenewed = pendingMessages(context) > 0;
  return {
    ...context,
    iteration: isRenewed ? 1 : context.iteration + 1,
    messagesTaken: context.messages,
    ...(isRenewed && FULL_ALLOWANCE),
    usage: { ...context.usage, modelCalls: context.usage.modelCalls + 1 },
  };
}

/** Usage with what a reply cost. */
const usageWith = ({ usage }: ConversationContext, reply: ModelReply): ConversationContext["usage"] => ({
  modelCalls: usage.modelCalls,
  inputTokens: usage.inputTokens + reply.usage.inputTokens,
  outputTokens: usage.outputTokens + reply.usage.outputTokens,
});

/** What a reply adds to what the conversation, and its turn, have cost. */
export const costOf = (
  context: ConversationContext,
  reply: ModelReply,
): Pick<ConversationContext, "usage" | "spent"> => ({
  usage: usageWith(context, reply),
  spent: spentWith(context.spent ?? NOTHING_SPENT, context.agent, reply),
});

/** The model replied; `planned` are its calls. */
export function withReply(context: ConversationContext, reply: ModelReply, planned: readonly PlannedCall[]): Changes {
  return {
    ...costOf(context, reply),
    fill: reply.usage.inputTokens + reply.usage.outputTokens,
    queue: [...toolCallsOf(planned)],
    lastText: reply.text.trim() === "" ? context.lastText : boundedText(reply.text),
    calls: planned.map((call) => {
      const { callId, childId, name, digest, plan } = call;
      const known = knownResultOf(call);
      return {
        callId,
        childId,
        name,
        kind: known === undefined ? kindOf(call) : "refused",
        isOpen: known === undefined,
        isWaitingForPerson: plan.kind === "ask" || plan.kind === "askParent",
        digest: known === undefined ? waitingDigest(call) : digestOf(digest, known),
        action: digest,
        ...(known !== undefined && { isError: !known.ok }),
        ...(plan.kind === "local" && plan.crashPolicy === "unsafe" && { input: call.input }),
        ...(plan.kind === "tasks" && known === undefined && plan.waits !== undefined && { waits: plan.waits }),
      };
    }),
  };
}

/** To wait once more for a task that runs is no step in a circle. */
const waitingDigest = ({ digest, childId, plan }: PlannedCall): string =>
  plan.kind === "tasks" && plan.waitMs !== undefined ? `${digest} ${childId}` : digest;

function kindOf({ childId, plan }: PlannedCall): StepCall["kind"] {
  if (plan.kind !== "tasks") return plan.kind;
  return plan.starts[0]?.childId === childId ? "delegate" : "wait";
}

/** A call has its result. */
export function withResult(
  context: Pick<ConversationContext, "calls">,
  childId: string,
  result: ToolResult,
): ConversationContext["calls"] {
  return changed(context, childId, ({ doubt: _doubt, input: _input, ...call }) => ({
    ...call,
    isOpen: false,
    isWaitingForPerson: false,
    digest: digestOf(call.digest, result),
    isError: !result.ok,
  }));
}

/** A person is asked whether a call happened. */
export const withDoubt = (context: ConversationContext, childId: string, doubt: Doubt): ConversationContext["calls"] =>
  changed(context, childId, (call) => ({ ...call, isWaitingForPerson: true, doubt, asked: (call.asked ?? 0) + 1 }));

/** A person has it made again. */
export const withoutDoubt = (context: ConversationContext, childId: string): ConversationContext["calls"] =>
  changed(context, childId, ({ doubt: _doubt, ...call }) => ({ ...call, isWaitingForPerson: false }));

/** A task says whether it waits for a person. */
export function withTaskStatus(context: ConversationContext, childId: string, isWaitingForPerson: boolean): Changes {
  return { calls: changed(context, childId, (call) => ({ ...call, isWaitingForPerson })) };
}

/** Every call has its result: the step is over. */
export function withStepOver(context: ConversationContext): Changes {
  const { calls, steps = [], agent } = context;
  const step: StepTrace = {
    action: hash128(calls.map(({ action, digest }) => action ?? digest).join(" ")),
    outcome: hash128(calls.map(({ digest }) => digest).join(" ")),
    isError: calls.every(({ isError }) => isError === true),
    isTalk: calls.every(({ kind, isError }) => kind === "refused" && isError === true),
  };
  return { calls: [], queue: [], steps: [...withStep(steps, step, stuckRules(agent.limits))] };
}

/** How the turn goes round in circles; undefined while it does not. */
export const stuckPattern = ({ steps = [], agent }: ConversationContext): StuckPattern | undefined =>
  stuckPatternOf(steps, stuckRules(agent.limits));

/** The next model call is told so, once. */
export function withNudge(context: ConversationContext): Changes {
  const pattern = stuckPattern(context);
  return pattern === undefined ? {} : { nudge: { pattern, modelCall: context.usage.modelCalls + 1 } };
}

/** Some open calls are ended before their outcome is known; the children that end by themselves are waited for. */
export function withCallsEnded(
  context: ConversationContext,
  ended: readonly StepCall[],
  isStepOver: boolean,
): Pick<ConversationContext, "calls" | "ending" | "queue"> {
  const isEnded = (call: StepCall) => ended.some((one) => one.childId === call.childId);
  return {
    queue: isStepOver ? [] : queueWithout(context, ended),
    calls: isStepOver
      ? []
      : context.calls.map((call) =>
          isEnded(call)
            ? { ...call, isOpen: false, isWaitingForPerson: false, isError: true, digest: `${call.digest}!` }
            : call,
        ),
    ending: [
      ...context.ending,
      ...ended.flatMap((call) => (isEndedByItself(call) ? [call.childId] : (call.doubt?.question ?? []))),
    ],
  };
}

/** Its child is told to end, and says when it has. One that can be continued only ends its run. */
export const isEndedByItself = ({ kind, waits }: StepCall): boolean =>
  kind === "ask" || (kind === "delegate" && waits === undefined);

/** Calls without a result. */
export const openCalls = (context: Pick<ConversationContext, "calls">): readonly StepCall[] =>
  context.calls.filter((call) => call.isOpen);

/** The reply in an output of `model.generate`; undefined when it is none. */
export const tryModelReply = (output: unknown): ModelReply | undefined => ModelReply.safeParse(output).data;

/** Why a reply without tool calls is no answer; undefined when it is one, or has calls. */
export function unanswerOf(context: ConversationContext, reply: ModelReply): Failure | undefined {
  if (reply.toolCalls.length > 0) return undefined;
  if (reply.finishReason === "length") {
    return { cause: "limit", code: "HF-5202", message: "The model's answer was cut off at its length limit." };
  }
  if (reply.finishReason === "contentFilter") {
    return { cause: "policy", code: "HF-5003", message: "The model endpoint withheld the answer." };
  }
  // Whoever waits for this one answer would take an empty success for a result.
  if ((context.parentTask !== undefined || context.once === true) && reply.text.trim() === "") {
    return { cause: "modelError", code: "HF-5004", message: "The agent ended without an answer." };
  }
  return undefined;
}

/** Why a model call failed, from the error of its job. */
export const modelFailureOf = (error: unknown): Failure => failureOf(error, { cause: "modelError", code: "HF-5003" });

const changed = (context: Pick<ConversationContext, "calls">, childId: string, change: (call: StepCall) => StepCall) =>
  context.calls.map((call) => (call.childId === childId ? change(call) : call));

const digestOf = (digest: string, result: ToolResult): string =>
  hash128(`${digest} ${String(result.ok)} ${result.content}`);
