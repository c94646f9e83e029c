import { childOutcomeOf } from "./child-outcome.ts";
import { pendingMessages } from "./conversation-context.ts";
import { openCallOf, replyOf, type Moment } from "./conversation-reading.ts";
import * as turn from "./conversation-turn.ts";
import { judgeMessage } from "./judge-message.ts";

/** The questions that the conversation machine's transitions ask, by name. */
export const conversationGuards = {
  hasMessages: ({ context }: Moment) => pendingMessages(context) > 0,
  hasHeldMessages: ({ context }: Moment) => pendingMessages(context) > 0 && context.isPauseRequested,
  isAcceptable: ({ context, event }: Moment) =>
    event.type === "userMessage" && judgeMessage(context, event.messageId).kind === "ok",
  isAcceptedAfterInterrupt: ({ context, event }: Moment) =>
    context.pausedBy === "interrupt" &&
    event.type === "userMessage" &&
    judgeMessage(context, event.messageId).kind === "ok",
  isInterrupted: ({ context }: Moment) => context.pausedBy === "interrupt",
  isPauseRequested: ({ context }: Moment) => context.isPauseRequested,
  isPauseNews: ({ context }: Moment) => !context.isPauseRequested,
  isTask: ({ context }: Moment) => context.parentTask !== undefined,
  isReplyWithCalls: (moment: Moment) => (replyOf(moment)?.toolCalls.length ?? 0) > 0,
  isAnswer: (moment: Moment) => {
    const reply = replyOf(moment);
    return reply !== undefined && turn.unanswerOf(moment.context, reply) === undefined;
  },
  isModelOutcome: ({ context, event }: Moment) => childOutcomeOf(event)?.childId === turn.runningModelChild(context),
  isCallOutcome: (moment: Moment) => openCallOf(moment) !== undefined,
  isOpenCall: ({ context, event }: Moment) =>
    event.type === "cancelTask" && turn.openCalls(context).some((call) => call.callId === event.callId),
  isStatusNews: ({ context, event }: Moment) =>
    event.type === "taskStatus" &&
    turn
      .openCalls(context)
      .some((call) => call.childId === event.childId && call.isWaitingForPerson !== (event.status !== "running")),
  isStepOver: ({ context }: Moment) => turn.openCalls(context).length === 0,
  areAllWaitingForPerson: ({ context }: Moment) => turn.openCalls(context).every((call) => call.isWaitingForPerson),
  isSomethingWorking: ({ context }: Moment) => turn.openCalls(context).some((call) => !call.isWaitingForPerson),
  isStuck: ({ context }: Moment) => context.repeat.count >= turn.MAX_EQUAL_STEPS,
  wasStuck: ({ context }: Moment) => context.lastFailure?.cause === "stuck",
  isOutOfIterations: ({ context }: Moment) => context.iteration >= context.agent.limits.maxIterations,
  hasNothingToWaitFor: ({ context }: Moment) => context.ending.length === 0,
};
