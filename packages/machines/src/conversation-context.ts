import { AgentDefinition, Budget } from "@holdfast/protocol";
import { z } from "zod";
import { BudgetRefusal } from "./budget-refusal.ts";
import { Doubt } from "./call-doubt.ts";
import { QueuedCall } from "./call-queue.ts";
import { ForkPoint } from "./conversation-fork.ts";
import { ConversationInput, ParentTask, PROMPT_MESSAGE_ID } from "./conversation-input.ts";
import { Usage } from "./conversation-output.ts";
import { Failure } from "./failure.ts";
import { TaskEntry } from "./task-book.ts";
import { TaskWait } from "./task-news.ts";
import { STUCK_PATTERNS, StepTrace } from "./stuck-detection.ts";
import { Spent } from "./turn-budget.ts";

/** Messages that may wait for the next model call; further ones are refused. */
export const MAX_PENDING_MESSAGES = 64;

/** A call of the running step. Its result stands in the journal; here is only that it has one. */
export const StepCall = z.object({
  callId: z.string(),
  childId: z.string(),
  name: z.string(),
  /** `wait`: for tasks that have names of their own. `refused`: its result was known at once. */
  kind: z.enum(["local", "delegate", "wait", "ask", "askParent", "refused"]),
  isOpen: z.boolean(),
  /** Open, and nothing happens until a person acts. */
  isWaitingForPerson: z.boolean(),
  /** Short hash of name, input and, once there is one, result. */
  digest: z.string(),
  /** Tasks it waits for; absent for a task that cannot be continued. */
  waits: TaskWait.optional(),
  /** Short hash of name and input. */
  action: z.string().optional(),
  /** Only of a call that must not be made twice unasked. */
  input: z.record(z.string(), z.unknown()).optional(),
  /** It may have happened, and a person is asked. */
  doubt: Doubt.optional(),
  /** Times that a person was asked about it. */
  asked: z.number().optional(),
  /** It has a result, and that is an error. */
  isError: z.boolean().optional(),
});
export type StepCall = Readonly<z.infer<typeof StepCall>>;

/** Where a conversation was when its past began to be condensed. */
export const Rest = z.enum(["idle", "paused", "error", "stuck", "turn"]);
export type Rest = z.infer<typeof Rest>;

/**
 * What a conversation keeps between events: bookkeeping, never messages. Those stand in the journal, `foldTranscript`
 * reads them.
 */
export const ConversationContext = z.object({
  conversationId: z.string(),
  agent: AgentDefinition,
  agents: z.record(z.string(), AgentDefinition),
  title: z.string().optional(),
  tags: z.record(z.string(), z.string()),
  parentTask: ParentTask.optional(),
  fork: ForkPoint.optional(),
  once: z.boolean().optional(),
  /** Keys of its forks. */
  forks: z.array(z.string()).optional(),
  /** It was deleted: what it holds is gone, or goes. */
  isDeleted: z.boolean().optional(),
  isCondenseRequested: z.boolean().optional(),
  /** Tokens of the last model call, read and written. Absent: there was none since the past was condensed, or that was tried. */
  fill: z.number().optional(),
  /** Where it goes on once the past is condensed; means nothing elsewhere. */
  rest: Rest.optional(),
  /** Model calls since the last user message was taken in. */
  iteration: z.number(),
  /** User messages accepted and, of these, shown to the model. The difference waits for the next model call. */
  messages: z.number(),
  messagesTaken: z.number(),
  /** Ids of the last accepted messages, oldest first; at least all that wait. */
  messageIds: z.array(z.string()),
  /** Calls of the running step, in the order of the reply. */
  calls: z.array(StepCall),
  /** Tasks that it may still talk to. Absent: there was none yet. */
  tasks: z.array(TaskEntry).optional(),
  /** Children that were told to end and have not yet. */
  ending: z.array(z.string()),
  isPauseRequested: z.boolean(),
  /** Why it rests in `paused`; means nothing elsewhere. A message continues after an interrupt, not after a pause. */
  pausedBy: z.enum(["pause", "interrupt"]),
  /** The last steps since a person said something, oldest first. */
  steps: z.array(StepTrace).optional(),
  /** It was told that it goes round in circles, by this model call; by call 0: it was not. */
  nudge: z.object({ pattern: z.enum(STUCK_PATTERNS), modelCall: z.number() }).optional(),
  /** Tool calls of the running step that have not started. */
  queue: z.array(QueuedCall).optional(),
  spent: Spent.optional(),
  budget: Budget.optional(),
  /** Why its last model call got no money; absent once a person has let it go on. */
  refusal: BudgetRefusal.optional(),
  /** Child that asks a person about the budget, while it does. */
  budgetQuestion: z.string().optional(),
  /** Fence that a person let it through. */
  pass: z.string().optional(),
  usage: Usage,
  /** Last text of the model, bounded. */
  lastText: z.string(),
  /** Why it last came to `error`, `stuck` or `failed`; means nothing elsewhere. */
  lastFailure: Failure.optional(),
  outcome: z.enum(["answered", "failed", "closed"]),
  /** It works again after a time in which only its tasks did; for the next entry into `working`. */
  isContinued: z.boolean().optional(),
  /** A model was called since the task it works for was last told how a run ended. */
  isRunOpen: z.boolean().optional(),
  /** What the task was last told; means nothing without one. */
  reported: z.enum(["running", "waiting", "held"]),
});
export type ConversationContext = Readonly<z.infer<typeof ConversationContext>>;

/**
 * Context of a conversation that nothing has happened in.
 *
 * @param conversationId  id of the actor
 * @throws ZodError when the input does not fit; for the machine that is status `error`, its parent is told
 */
export function initialConversation(input: unknown, conversationId: string): ConversationContext {
  const { prompt, ...rest } = ConversationInput.parse(input);
  return {
    ...rest,
    conversationId,
    iteration: 0,
    // What a fork has in common with its origin is one message more for it, when it still has to be answered.
    messages: (prompt === undefined ? 0 : 1) + sharedMessages(rest.fork),
    messagesTaken: 0,
    messageIds: prompt === undefined ? [] : [PROMPT_MESSAGE_ID],
    calls: [],
    ending: [],
    isPauseRequested: false,
    pausedBy: "pause",
    usage: { modelCalls: 0, inputTokens: 0, outputTokens: 0 },
    lastText: "",
    outcome: "closed",
    reported: "running",
  };
}

/** What a fork counts for the unanswered end of what it shares. */
export const sharedMessages = (fork: ForkPoint | undefined): number => (fork?.isUnanswered === true ? 1 : 0);

/** User messages that wait for the next model call, the unanswered end of what a fork shares among them. */
export const pendingMessages = (context: Pick<ConversationContext, "messages" | "messagesTaken">): number =>
  context.messages - context.messagesTaken;
