import { childOutcomeOf } from "./child-outcome.ts";
import { budgetAnswerOf, isToRest, refusalOf, STOP } from "./conversation-budget.ts";
import { pendingMessages, type Rest } from "./conversation-context.ts";
import { openCallOf, openQuestionOf, openWaitOf, replyOf, type Moment } from "./conversation-reading.ts";
import { isTaskNews } from "./conversation-tasks.ts";
import * as turn from "./conversation-turn.ts";
import { isOtherDescription } from "./describe-conversation.ts";
import { judgeFork } from "./judge-fork.ts";
import { judgeMessage } from "./judge-message.ts";
import { judgeModel, NOTHING_SPENT, overBudget } from "./turn-budget.ts";

const isAccepted = ({ context, event }: Moment): boolean =>
  event.type === "userMessage" && judgeMessage(context, event.messageId).kind === "ok";

const isToRun = ({ event }: Moment): boolean => event.type === "userMessage" && event.run !== false;

const isAfterInterrupt = (moment: Moment): boolean =>
  moment.context.pausedBy === "interrupt" && isAccepted(moment) && isToRun(moment);

/** The questions that the conversation machine's transitions ask, by name. */
export const conversationGuards = {
  hasMessages: ({ context }: Moment) => pendingMessages(context) > 0,
  hasHeldMessages: ({ context }: Moment) => pendingMessages(context) > 0 && context.isPauseRequested,
  /** A fork without a message of its own waits until it is told to run. */
  beginsAtOnce: ({ context }: Moment) => context.messageIds.length > 0,
  isAcceptedToRun: (moment: Moment) => isAccepted(moment) && isToRun(moment),
  isAcceptable: isAccepted,
  isAcceptedAfterInterrupt: isAfterInterrupt,
  /** A message that arrives while the past of an interrupted conversation is condensed. */
  isContinuation: (moment: Moment) => moment.context.rest === "paused" && isAfterInterrupt(moment),
  isPauseOfTurn: ({ context }: Moment) => context.rest === "turn" && !context.isPauseRequested,
  isInterrupted: ({ context }: Moment) => context.pausedBy === "interrupt",
  isPauseRequested: ({ context }: Moment) => context.isPauseRequested,
  isPauseNews: ({ context }: Moment) => !context.isPauseRequested,
  endsWithAnswer: ({ context }: Moment) =>
    (context.parentTask !== undefined && context.parentTask.isKept !== true) || context.once === true,
  isReplyWithCalls: (moment: Moment) => (replyOf(moment)?.toolCalls.length ?? 0) > 0,
  isAnswer: (moment: Moment) => {
    const reply = replyOf(moment);
    return reply !== undefined && turn.unanswerOf(moment.context, reply) === undefined;
  },
  isModelOutcome: ({ context, event }: Moment) => childOutcomeOf(event)?.childId === turn.runningModelChild(context),
  isCallOutcome: (moment: Moment) => {
    const call = openCallOf(moment);
    return call !== undefined && call.waits === undefined;
  },
  isWatched: ({ context }: Moment) => context.parentTask?.wantsPulse === true,
  isTaskNews: ({ context, event }: Moment) => isTaskNews(context, event),
  isOpenWait: ({ context, event }: Moment) =>
    event.type === "taskWaitOver" && openWaitOf(context, event.childId) !== undefined,
  isOpenQuestion: ({ context, event }: Moment) =>
    event.type === "parentAnswered" && openQuestionOf(context, event.callId) !== undefined,
  isOpenCall: ({ context, event }: Moment) =>
    event.type === "cancelTask" && turn.openCalls(context).some((call) => call.callId === event.callId),
  isStatusNews: ({ context, event }: Moment) =>
    event.type === "taskStatus" &&
    turn
      .openCalls(context)
      .some((call) => call.childId === event.childId && call.isWaitingForPerson !== (event.status !== "running")),
  isStepOver: ({ context }: Moment) => turn.openCalls(context).length === 0,
  areAllWaitingForPerson: ({ context }: Moment) => turn.openCalls(context).every((call) => call.isWaitingForPerson),
  areOnlyTasksWorking: ({ context }: Moment) =>
    turn.openCalls(context).every((call) => call.kind !== "local" || call.doubt !== undefined),
  isOnlyParentAsked: ({ context }: Moment) => turn.openCalls(context).every((call) => call.kind === "askParent"),
  isSomethingWorking: ({ context }: Moment) => turn.openCalls(context).some((call) => !call.isWaitingForPerson),
  isStuck: ({ context }: Moment) => turn.isNudged(context) && turn.stuckPattern(context) !== undefined,
  isToNudge: ({ context }: Moment) => turn.stuckPattern(context) !== undefined,
  isOutOfBudget: ({ context }: Moment) => overBudget(context.spent ?? NOTHING_SPENT, context.agent) !== undefined,
  isRefusedToRest: isToRest,
  isRefusedMoney: (moment: Moment) => refusalOf(moment) !== undefined,
  isStopAnswer: (moment: Moment) => budgetAnswerOf(moment) === STOP,
  isBudgetAnswer: (moment: Moment) => budgetAnswerOf(moment) !== undefined,
  wasStuck: ({ context }: Moment) => context.lastFailure?.cause === "stuck",
  isOutOfIterations: ({ context }: Moment) => context.iteration >= context.agent.limits.maxIterations,
  isFirstDeletion: ({ context }: Moment) => context.isDeleted !== true,
  isPatientDeletion: ({ context, event }: Moment) =>
    context.isDeleted !== true && event.type === "delete" && event.children === "await",
  isImpatientDeletion: ({ event }: Moment) => event.type === "delete" && event.children !== "await",
  isDescriptionNews: ({ context, event }: Moment) =>
    event.type === "describe" && context.isDeleted !== true && isOtherDescription(context, event),
  isModelNews: ({ context, event }: Moment) =>
    event.type === "switchModel" && judgeModel(context.agent, event.model).kind === "ok",
  isForkNews: ({ context, event }: Moment) =>
    event.type === "forked" && judgeFork(context.forks ?? [], event.fork).kind === "ok",
  isCondensable: ({ context }: Moment) => context.usage.modelCalls > 0 || context.fork !== undefined,
  isCondenseNews: ({ context }: Moment) => context.isCondenseRequested !== true,
  isCondenseRequested: ({ context }: Moment) => context.isCondenseRequested === true,
  /** A message of a person renews what a turn may use; without one its limits are asked before a summary is paid for. */
  isToCondense: ({ context }: Moment) =>
    context.isCondenseRequested === true || (turn.isFull(context) && pendingMessages(context) > 0),
  isFull: ({ context }: Moment) => turn.isFull(context),
  isCondensation: ({ context, event }: Moment) => childOutcomeOf(event)?.childId === turn.runningCondenser(context),
  isRest: ({ context }: Moment, { rest }: { rest: Rest }) => context.rest === rest,
  hasNothingToWaitFor: ({ context }: Moment) => context.ending.length === 0,
};
