import {
  INHERITED_MODEL,
  TaskArguments,
  TaskGroupArguments,
  TaskOutputArguments,
  TaskStopArguments,
  type AgentDefinition,
  type ClosePolicy,
  type ToolDefinition,
  type ToolResult,
} from "@holdfast/protocol";
import { z } from "zod";
import { DelegateArguments, reachableAgents } from "./call-arguments.ts";
import { errorResult, type NamedCall } from "./call-result.ts";
import { MAX_DELEGATION_DEPTH } from "./conversation-input.ts";
import type { Failure } from "./failure.ts";
import {
  nameableTasks,
  openTasks,
  roomIn,
  taskNamed,
  withEntry,
  withTurns,
  type TaskBook,
  type TaskEntry,
} from "./task-book.ts";
import { outputResult, type TaskWait } from "./task-news.ts";
import { toldResult } from "./task-report.ts";

// What the calls that concern tasks come to, and what they change in the book. Functions of their arguments alone.

type Agents = Readonly<Record<string, AgentDefinition>>;

/** Tasks of a conversation that may be open at the same time, unless its agent says otherwise. */
const MAX_OPEN_TASKS = 64;

/** Who called, as far as it matters for what may be called. */
export interface Caller {
  readonly agent: AgentDefinition;
  readonly agents: Agents;
  /** Delegations above this conversation. */
  readonly depth: number;
  /** Greatest depth of its tasks; absent: that of the fleet. */
  readonly maxDepth?: number | undefined;
  /** Its tasks that it may still talk to. */
  readonly tasks?: TaskBook;
  /** Whoever delegated its work answers questions. */
  readonly canAsk?: boolean;
  /** The wallet that pays for it and all below it is fenced: nothing new is begun. */
  readonly isFenced?: boolean;
}

/** A task to be started. */
export interface TaskStart {
  readonly childId: string;
  readonly task: Omit<DelegateArguments, "subagent"> & { readonly idleMs?: number | undefined };
  readonly subagent: AgentDefinition;
  readonly agents: Agents;
  readonly depth: number;
  readonly maxDepth: number | undefined;
  readonly isKept: boolean;
  readonly canAsk: boolean;
  readonly isHeld: boolean;
  readonly onClose: ClosePolicy;
}

/** What is sent to a task. */
export interface TaskMessage {
  readonly to: string;
  readonly event:
    | { readonly type: "continueTask"; readonly runs: number; readonly prompt: string }
    | { readonly type: "cancel"; readonly reason: string };
}

/** A call that concerns tasks: what it starts, tells and waits for. With a `result` it waits for nothing. */
export interface TaskPlan {
  readonly kind: "tasks";
  readonly starts: readonly TaskStart[];
  readonly message?: TaskMessage;
  readonly waits?: TaskWait;
  /** How long it waits, ms; absent: as long as it takes. */
  readonly waitMs?: number;
  readonly result?: ToolResult;
}

export type TaskVerdict =
  | {
      readonly kind: "planned";
      readonly plan: TaskPlan;
      readonly book: TaskBook;
      readonly released?: readonly string[];
    }
  | { readonly kind: "refused"; readonly result: ToolResult };

interface TaskCall extends NamedCall {
  readonly childId: string;
}

const refuse = (call: NamedCall, cause: Failure["cause"], code: string, message: string): TaskVerdict => ({
  kind: "refused",
  result: errorResult(call, { cause, code, message }),
});

const misfit = (call: NamedCall, error: z.ZodError): TaskVerdict =>
  refuse(
    call,
    "toolError",
    "HF-5102",
    `Arguments of ${call.name} do not fit: ${z.prettifyError(error)}. Correct them and call again.`,
  );

/** Whether tasks of this tool are kept: its model can name them again. */
const isKeeping = ({ inputSchema }: ToolDefinition): boolean => {
  const { properties } = inputSchema;
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, "resume");
};

/** @param startsLeft  child actors that the step may still start */
export type TaskPlanner = (
  call: TaskCall,
  input: unknown,
  caller: Caller & { readonly tasks: TaskBook; readonly startsLeft: number },
  tool: ToolDefinition,
) => TaskVerdict;

/** Kind `delegate`: a task that is waited for, or with the arguments for it one that is kept. */
export const planDelegate: TaskPlanner = (call, input, caller, tool) => {
  if (isKeeping(tool)) return planKept(call, input, caller);
  const parsed = DelegateArguments.safeParse(input);
  if (!parsed.success) return misfit(call, parsed.error);
  const { subagent, ...task } = parsed.data;
  const admitted = admit(call, subagent, caller, 1);
  if (admitted.kind === "refused") return admitted;
  const { childId } = call;
  const agent = admitted.base.subagent.name;
  const entry: NewTask = { childId, agent, onClose: "cancel", resources: [], isSharing: true, isPlain: true };
  const { book, isHeld } = withNewTask(caller.tasks, caller, entry);
  const start = { ...admitted.base, childId, task, isKept: false, canAsk: false, isHeld };
  const plan = { kind: "tasks", starts: [{ ...start, onClose: "cancel" }] } as const;
  return { kind: "planned", plan, book };
};

function planKept(call: TaskCall, input: unknown, caller: Parameters<TaskPlanner>[2]): TaskVerdict {
  const parsed = TaskArguments.safeParse(input);
  if (!parsed.success) return misfit(call, parsed.error);
  const { subagent, resume, background = false, onClose = "cancel", resources = [], onConflict, ...task } = parsed.data;
  if (resume !== undefined) return planFollowUp(call, resume, task.prompt, background, caller);
  const { delegates } = caller.agent;
  const admitted = admit(call, subagent ?? (delegates.length === 1 ? delegates[0] : undefined), caller, 1);
  if (admitted.kind === "refused") return admitted;
  const room = roomIn(caller.tasks);
  const added = withNewTask(room.book, caller, {
    childId: call.childId,
    agent: admitted.base.subagent.name,
    onClose,
    resources,
    isSharing: onConflict === "allow",
  });
  const start = { ...admitted.base, childId: call.childId, task, isKept: true, canAsk: true, isHeld: added.isHeld };
  const status = added.isHeld ? "queued" : "running";
  const plan: TaskPlan = {
    kind: "tasks",
    starts: [{ ...start, onClose }],
    waits: { kind: "task", task: call.childId, runs: 0, isOwner: true },
    ...(background && { result: toldResult(call, { taskId: call.childId, status }) }),
  };
  return { kind: "planned", plan, book: added.book, released: room.released };
}

function planFollowUp(
  call: TaskCall,
  resume: string,
  prompt: string,
  background: boolean,
  { tasks }: Parameters<TaskPlanner>[2],
): TaskVerdict {
  const found = find(call, resume, tasks);
  if (found.kind === "refused") return found;
  const { childId, followUps, isOver } = found.entry;
  if (isOver) return refuse(call, "limit", "HF-3009", `Task ${childId} has ended for good. Start another one.`);
  const runs = followUps + 1;
  const plan: TaskPlan = {
    kind: "tasks",
    starts: [],
    message: { to: childId, event: { type: "continueTask", runs, prompt } },
    waits: { kind: "task", task: childId, runs, isOwner: true },
    ...(background && { result: toldResult(call, { taskId: childId, status: "running" }) }),
  };
  const book = withEntry(tasks, childId, { followUps: runs, status: "running", isAsking: false });
  return { kind: "planned", plan, book };
}

/** Kind `taskGroup`. */
export const planGroup: TaskPlanner = (call, input, caller) => {
  const parsed = TaskGroupArguments.safeParse(input);
  if (!parsed.success) return misfit(call, parsed.error);
  const { tasks, mode, quorum = 0 } = parsed.data;
  let { tasks: book } = caller;
  const starts: TaskStart[] = [];
  const released: string[] = [];
  for (const [index, { subagent, ...task }] of tasks.entries()) {
    const admitted = admit(call, subagent, { ...caller, tasks: book }, tasks.length - index);
    if (admitted.kind === "refused") return admitted;
    const childId = `group${call.childId.slice("call".length)}-${index}`;
    const agent = admitted.base.subagent.name;
    const room = roomIn(book);
    const entry: NewTask = { childId, agent, onClose: "cancel", resources: [], isSharing: true, group: call.childId };
    const added = withNewTask(room.book, caller, entry);
    ({ book } = added);
    released.push(...room.released);
    // Nobody could answer: the conversation waits for the group as a whole.
    const start = { ...admitted.base, childId, task, isKept: true, canAsk: false, isHeld: added.isHeld };
    starts.push({ ...start, onClose: "cancel" });
    caller = { ...caller, startsLeft: caller.startsLeft - 1 };
  }
  return { kind: "planned", plan: { kind: "tasks", starts, waits: { kind: "group", mode, quorum } }, book, released };
};

/** Kind `taskOutput`: how a task ended, or with `waitMs` how it ends. */
export const planOutput: TaskPlanner = (call, input, { tasks }) => {
  const parsed = TaskOutputArguments.safeParse(input);
  if (!parsed.success) return misfit(call, parsed.error);
  const { taskId, waitMs = 0 } = parsed.data;
  const found = find(call, taskId, tasks);
  if (found.kind === "refused") return found;
  const { childId, followUps, isAsking } = found.entry;
  const isRunning = openTasks([found.entry]).length > 0 && !isAsking;
  const plan: TaskPlan =
    isRunning && waitMs > 0
      ? { kind: "tasks", starts: [], waits: { kind: "task", task: childId, runs: followUps, isOwner: false }, waitMs }
      : { kind: "tasks", starts: [], result: outputResult(call, tasks, childId) };
  return { kind: "planned", plan, book: tasks };
};

/** Kind `taskStop`: the task is told to stop; it ends as `cancelled`, unless it was done already. */
export const planStop: TaskPlanner = (call, input, { tasks }) => {
  const parsed = TaskStopArguments.safeParse(input);
  if (!parsed.success) return misfit(call, parsed.error);
  const { taskId, reason = "stopped by the agent that delegated it" } = parsed.data;
  const found = find(call, taskId, tasks);
  if (found.kind === "refused") return found;
  const { childId } = found.entry;
  const isOpen = openTasks([found.entry]).length > 0;
  const plan: TaskPlan = isOpen
    ? {
        kind: "tasks",
        starts: [],
        message: { to: childId, event: { type: "cancel", reason } },
        result: toldResult(call, { taskId: childId, status: "stopping" }),
      }
    : { kind: "tasks", starts: [], result: outputResult(call, tasks, childId) };
  return { kind: "planned", plan, book: tasks };
};

type Found = { readonly kind: "found"; readonly entry: TaskEntry } | Extract<TaskVerdict, { kind: "refused" }>;

function find(call: NamedCall, taskId: string, tasks: TaskBook): Found {
  const named = nameableTasks(tasks);
  const entry = taskNamed(named, taskId);
  if (entry !== undefined) return { kind: "found", entry };
  const known = named.map(({ childId }) => childId).join(", ") || "none";
  const result = errorResult(call, {
    cause: "toolError",
    code: "HF-5205",
    message: `There is no task ${taskId}. Known: ${known}.`,
  });
  return { kind: "refused", result };
}

type NewTask = Pick<TaskEntry, "childId" | "agent" | "onClose" | "resources" | "isSharing" | "group" | "isPlain">;

/** It waits for its turn when an open task is in its way, or as many run as may. */
function withNewTask(
  before: TaskBook,
  { agent }: Caller,
  task: NewTask,
): { readonly book: TaskBook; readonly isHeld: boolean } {
  const entry = { ...task, status: "running", followUps: 0, isOver: false, isHeld: true, isAsking: false } as const;
  const { book, proceed } = withTurns([...before, entry], agent.limits.maxRunningTasks ?? Number.POSITIVE_INFINITY);
  const isHeld = !proceed.includes(task.childId);
  return { book: isHeld ? withEntry(book, task.childId, { status: "queued" }) : book, isHeld };
}

type Admission =
  | {
      readonly kind: "admitted";
      readonly base: Pick<TaskStart, "subagent" | "agents" | "depth" | "maxDepth">;
    }
  | Extract<TaskVerdict, { kind: "refused" }>;

/** @param wanted  tasks that the call has still to start, this one included */
function admit(
  call: NamedCall,
  name: string | undefined,
  caller: Parameters<TaskPlanner>[2],
  wanted: number,
): Admission {
  const { agent, agents, tasks, startsLeft } = caller;
  const limit = (message: string): Admission => ({
    kind: "refused",
    result: errorResult(call, { cause: "limit", code: "HF-5202", message }),
  });
  const isKnown = name !== undefined && agent.delegates.includes(name) && Object.hasOwn(agents, name);
  const defined = isKnown ? agents[name] : undefined;
  if (defined === undefined) {
    const known = agent.delegates.filter((one) => Object.hasOwn(agents, one)).join(", ") || "none";
    const message = `There is no agent ${name ?? "by default"} to delegate to. Available: ${known}.`;
    return { kind: "refused", result: errorResult(call, { cause: "toolError", code: "HF-5201", message }) };
  }
  // What the task is started with is whole: it holds for its life, whatever becomes of agents and files meanwhile.
  const subagent = defined.model === INHERITED_MODEL ? { ...defined, model: agent.model } : defined;
  if (caller.isFenced === true) {
    const message = "The budget of this work is spent (root_budget_fence): no more tasks are started.";
    return { kind: "refused", result: errorResult(call, { cause: "limit", code: "HF-5304", message }) };
  }
  const depth = caller.depth + 1;
  const own = agent.limits.maxTaskDepth;
  const maxDepth = Math.min(
    caller.maxDepth ?? MAX_DELEGATION_DEPTH,
    own === undefined ? MAX_DELEGATION_DEPTH : caller.depth + own,
  );
  if (depth > maxDepth) {
    return limit(
      `Work is delegated ${caller.depth} levels deep already, no more is allowed. Do it without delegating.`,
    );
  }
  const maxOpen = agent.limits.maxOpenTasks ?? MAX_OPEN_TASKS;
  if (openTasks(tasks).length + wanted > maxOpen) {
    return limit(`At most ${maxOpen} tasks may be open at once. Wait for some to end, or stop some.`);
  }
  if (wanted > startsLeft) return limit("Too many tasks in one step; repeat this call later.");
  const isLimited = maxDepth < MAX_DELEGATION_DEPTH;
  return {
    kind: "admitted",
    base: {
      subagent,
      agents: reachableAgents(agents, subagent),
      depth,
      maxDepth: isLimited ? maxDepth : undefined,
    },
  };
}
