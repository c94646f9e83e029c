import { AskParentArguments, hash128, MAX_STARTS_PER_COMMIT } from "@holdfast/protocol";
import type { CrashPolicy, ModelReply, ToolDefinition, ToolResult } from "@holdfast/protocol";
import { errorResult, type NamedCall } from "./call-result.ts";
import type { Failure } from "./failure.ts";
import { isPlainObject, mismatchOf } from "./json-schema-subset.ts";
import { Question } from "./owner-wait-input.ts";
import type { TaskBook } from "./task-book.ts";
import {
  planDelegate,
  planGroup,
  planOutput,
  planStop,
  type Caller,
  type TaskPlan,
  type TaskVerdict,
} from "./task-plan.ts";
import { z } from "zod";

type Input = Readonly<Record<string, unknown>>;

/** How a call is carried out. `refused`: not at all, its result is known at once. */
type CallPlan =
  | { readonly kind: "local"; readonly crashPolicy: CrashPolicy }
  | TaskPlan
  | { readonly kind: "ask"; readonly question: Question }
  | { readonly kind: "askParent"; readonly question: string }
  | { readonly kind: "refused"; readonly result: ToolResult };

/** A tool call with names that every provider takes back, and what is to be done about it. */
export interface PlannedCall extends NamedCall {
  /** Child that carries it out: `call-<model call>-<call id>`. Unlike call ids, unique in the life of a conversation. */
  readonly childId: string;
  readonly input: Input;
  /** Short hash of name and input. */
  readonly digest: string;
  readonly plan: CallPlan;
}

/** The result that a call has as soon as it is planned; undefined when it has to be waited for. */
export const knownResultOf = ({ plan }: PlannedCall): ToolResult | undefined =>
  plan.kind === "refused" || plan.kind === "tasks" ? plan.result : undefined;

/** What is to be done about a reply. */
export interface PlannedReply {
  readonly calls: readonly PlannedCall[];
  /** The tasks of the caller afterwards. */
  readonly tasks: TaskBook;
  /** Tasks that are let go, to make room for others. */
  readonly released: readonly string[];
}

/**
 * What is to be done about the tool calls of a reply, in their order. A function of its arguments alone: the conversation
 * acts by it and the transcript is folded by it.
 *
 * @param modelCall  number of the model call that gave the reply
 */
export function planReply(modelCall: number, reply: ModelReply, caller: Caller): PlannedReply {
  const taken = new Set<string>();
  const released: string[] = [];
  let tasks = caller.tasks ?? [];
  let startsLeft = MAX_STARTS_PER_COMMIT;
  // The questions of an earlier step are closed: a step ends when each of its calls has a result.
  let waitsLeft = caller.agent.limits.maxOpenWaits ?? MAX_STARTS_PER_COMMIT;
  const calls = reply.toolCalls.map((call, index): PlannedCall => {
    const callId = freshId(call.callId, taken);
    const name = call.name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
    // Providers take an object back and nothing else; what was wrong with it stands in the result.
    const input = isPlainObject(call.input) ? call.input : {};
    const named = { callId, name, childId: `call-${modelCall}-${callId}` };
    const planned =
      index < MAX_STARTS_PER_COMMIT
        ? planOf(named, call.input, { ...caller, tasks, startsLeft, waitsLeft, isFenced: reply.isFenced === true })
        : refusal(named, "limit", "HF-5202", `At most ${MAX_STARTS_PER_COMMIT} calls at once; repeat this one later.`);
    const digest = hash128(JSON.stringify([name, call.input ?? ""]));
    if (!("book" in planned)) {
      if (planned.kind === "ask") {
        startsLeft -= 1;
        waitsLeft -= 1;
      }
      return { ...named, input, digest, plan: planned };
    }
    tasks = planned.book;
    startsLeft -= planned.plan.starts.length;
    released.push(...(planned.released ?? []));
    return { ...named, input, digest, plan: planned.plan };
  });
  return { calls, tasks, released };
}

// Two calls of one id, or an id outside of the alphabet of the providers, would make the history invalid for ever.
function freshId(callId: string, taken: Set<string>): string {
  const base = callId.replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 60) || "call";
  let id = base;
  for (let n = 2; taken.has(id); n += 1) id = `${base}-${n}`;
  taken.add(id);
  return id;
}

function refusal(
  call: NamedCall,
  cause: Failure["cause"],
  code: string,
  message: string,
): Extract<CallPlan, { kind: "refused" }> {
  return { kind: "refused", result: errorResult(call, { cause, code, message }) };
}

const badArguments = (call: NamedCall, problem: string): Extract<CallPlan, { kind: "refused" }> =>
  refusal(
    call,
    "toolError",
    "HF-5102",
    `Arguments of ${call.name} do not fit: ${problem}. Correct them and call again.`,
  );

type Planning = Caller & { readonly tasks: TaskBook; readonly startsLeft: number; readonly waitsLeft: number };
type Planned = Exclude<CallPlan, TaskPlan> | Extract<TaskVerdict, { kind: "planned" }>;

function planOf(call: PlanningCall, input: unknown, caller: Planning): Planned {
  const tool = caller.agent.tools.find((tool) => tool.name === call.name);
  if (tool === undefined) {
    const known = caller.agent.tools.map((tool) => tool.name).join(", ") || "none";
    return refusal(call, "toolError", "HF-5101", `There is no tool ${call.name}. Available: ${known}.`);
  }
  if (!isPlainObject(input)) return badArguments(call, "an object is expected");
  return PLANNERS[tool.kind](call, input, caller, tool);
}

type PlanningCall = NamedCall & { readonly childId: string };
type Planner = (call: PlanningCall, input: Input, caller: Planning, tool: ToolDefinition) => Planned;

const PLANNERS: Readonly<Record<ToolDefinition["kind"], Planner>> = {
  local: (call, input, _caller, tool) => {
    const mismatch = mismatchOf(tool.inputSchema, input, { allowUnknownKeys: true }, "arguments");
    return mismatch === undefined ? { kind: "local", crashPolicy: tool.crashPolicy } : badArguments(call, mismatch);
  },
  delegate: planDelegate,
  taskGroup: planGroup,
  taskOutput: planOutput,
  taskStop: planStop,
  ask: (call, input, { startsLeft, waitsLeft, agent }) => {
    const question = Question.safeParse(input);
    if (!question.success) return badArguments(call, z.prettifyError(question.error));
    if (startsLeft < 1) return refusal(call, "limit", "HF-5202", "Too much in one step; repeat this call later.");
    if (waitsLeft < 1) {
      const most = `At most ${agent.limits.maxOpenWaits} questions may be open; ask again when one of them is answered.`;
      return refusal(call, "limit", "HF-5202", most);
    }
    return { kind: "ask", question: question.data };
  },
  askParent: (call, input, { canAsk = false }) => {
    const question = AskParentArguments.safeParse(input);
    if (!question.success) return badArguments(call, z.prettifyError(question.error));
    if (!canAsk) return refusal(call, "toolError", "HF-5201", "Nobody who delegated this work can be asked. Decide.");
    return { kind: "askParent", question: question.data.question };
  },
};
