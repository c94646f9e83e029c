import { hash128, MAX_STARTS_PER_COMMIT } from "@holdfast/protocol";
import type { AgentDefinition, CrashPolicy, ModelReply, ToolDefinition, ToolResult } from "@holdfast/protocol";
import { DelegateArguments, reachableAgents } from "./call-arguments.ts";
import { errorResult, type NamedCall } from "./call-result.ts";
import { MAX_DELEGATION_DEPTH } from "./conversation-input.ts";
import type { Failure } from "./failure.ts";
import { isPlainObject, mismatchOf } from "./json-schema-subset.ts";
import { Question } from "./owner-wait-input.ts";
import { z } from "zod";

type Agents = Readonly<Record<string, AgentDefinition>>;
type Input = Readonly<Record<string, unknown>>;

/** How a call is carried out. `refused`: not at all, its result is known at once. */
type CallPlan =
  | { readonly kind: "local"; readonly crashPolicy: CrashPolicy }
  | {
      readonly kind: "delegate";
      readonly task: DelegateArguments;
      readonly subagent: AgentDefinition;
      readonly agents: Agents;
      readonly depth: number;
    }
  | { readonly kind: "ask"; readonly question: Question }
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

/** Who called, as far as it matters for what may be called. */
export interface Caller {
  readonly agent: AgentDefinition;
  readonly agents: Agents;
  /** Delegations above this conversation. */
  readonly depth: number;
}

/**
 * What is to be done about the tool calls of a reply, in their order. A function of its arguments alone: the conversation
 * acts by it and the transcript is folded by it.
 *
 * @param modelCall  number of the model call that gave the reply
 */
export function planCalls(modelCall: number, reply: ModelReply, caller: Caller): readonly PlannedCall[] {
  const taken = new Set<string>();
  return reply.toolCalls.map((call, index) => {
    const callId = freshId(call.callId, taken);
    const name = call.name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
    // Providers take an object back and nothing else; what was wrong with it stands in the result.
    const input = isPlainObject(call.input) ? call.input : {};
    const named = { callId, name };
    const plan =
      index < MAX_STARTS_PER_COMMIT
        ? planOf(named, call.input, caller)
        : refusal(named, "limit", "HF-5202", `At most ${MAX_STARTS_PER_COMMIT} calls at once; repeat this one later.`);
    const digest = hash128(JSON.stringify([name, call.input ?? ""]));
    return { ...named, childId: `call-${modelCall}-${callId}`, input, digest, plan };
  });
}

// Two calls of one id, or an id outside of the alphabet of the providers, would make the history invalid for ever.
function freshId(callId: string, taken: Set<string>): string {
  const base = callId.replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 60) || "call";
  let id = base;
  for (let n = 2; taken.has(id); n += 1) id = `${base}-${n}`;
  taken.add(id);
  return id;
}

function refusal(call: NamedCall, cause: Failure["cause"], code: string, message: string): CallPlan {
  return { kind: "refused", result: errorResult(call, { cause, code, message }) };
}

const badArguments = (call: NamedCall, problem: string): CallPlan =>
  refusal(
    call,
    "toolError",
    "HF-5102",
    `Arguments of ${call.name} do not fit: ${problem}. Correct them and call again.`,
  );

function planOf(call: NamedCall, input: unknown, caller: Caller): CallPlan {
  const tool = caller.agent.tools.find((tool) => tool.name === call.name);
  if (tool === undefined) {
    const known = caller.agent.tools.map((tool) => tool.name).join(", ") || "none";
    return refusal(call, "toolError", "HF-5101", `There is no tool ${call.name}. Available: ${known}.`);
  }
  if (!isPlainObject(input)) return badArguments(call, "an object is expected");
  return PLANNERS[tool.kind](call, input, caller, tool);
}

type Planner = (call: NamedCall, input: Input, caller: Caller, tool: ToolDefinition) => CallPlan;

const PLANNERS: Readonly<Record<ToolDefinition["kind"], Planner>> = {
  local: (call, input, _caller, tool) => {
    const mismatch = mismatchOf(tool.inputSchema, input, { allowUnknownKeys: true }, "arguments");
    return mismatch === undefined ? { kind: "local", crashPolicy: tool.crashPolicy } : badArguments(call, mismatch);
  },
  delegate: (call, input, caller) => {
    const task = DelegateArguments.safeParse(input);
    if (!task.success) return badArguments(call, z.prettifyError(task.error));
    const { agent, agents } = caller;
    const name = task.data.subagent;
    const subagent = agent.delegates.includes(name) && Object.hasOwn(agents, name) ? agents[name] : undefined;
    if (subagent === undefined) {
      const known = agent.delegates.filter((one) => Object.hasOwn(agents, one)).join(", ") || "none";
      return refusal(call, "toolError", "HF-5201", `There is no agent ${name} to delegate to. Available: ${known}.`);
    }
    const depth = caller.depth + 1;
    if (depth > MAX_DELEGATION_DEPTH) {
      const limit = `Work is delegated ${MAX_DELEGATION_DEPTH} levels deep already. Do it without delegating.`;
      return refusal(call, "limit", "HF-5202", limit);
    }
    return { kind: "delegate", task: task.data, subagent, agents: reachableAgents(agents, subagent), depth };
  },
  ask: (call, input) => {
    const question = Question.safeParse(input);
    if (!question.success) return badArguments(call, z.prettifyError(question.error));
    return { kind: "ask", question: question.data };
  },
};
