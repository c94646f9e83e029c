import { AgentDefinition, INHERITED_MODEL, RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { taskTool, taskTools } from "./delegation-tools.ts";

export type AgentSpec = z.input<typeof AgentDefinition>;

/** Declares an agent. @throws RuntimeFault HF-1001 when a field does not fit, two of its tools have one name, or its budget has no price */
export function defineAgent(spec: AgentSpec): AgentDefinition {
  const parsed = AgentDefinition.safeParse(spec);
  if (!parsed.success) {
    throw new RuntimeFault("HF-1001", `Agent ${spec.name}: it does not fit. ${z.prettifyError(parsed.error)}`);
  }
  const names = parsed.data.tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const { limits, prices = {}, model } = parsed.data;
  // Which model it will inherit is known when it is delegated to: one without a price ends the turn there.
  const hasPrice = model === INHERITED_MODEL ? Object.keys(prices).length > 0 : Object.hasOwn(prices, model);
  if (limits.maxCostMicroUsd !== undefined && !hasPrice) {
    const fix = `Add it to prices, or limit tokens instead.`;
    throw new RuntimeFault("HF-1001", `Agent ${spec.name}: it has a budget in money, and ${model} no price. ${fix}`);
  }
  if (twice === undefined) return parsed.data;
  throw new RuntimeFault("HF-1001", `Agent ${spec.name}: it has two tools named ${twice}. Leave one out.`);
}

/**
 * The agent with leave to delegate to `others` besides those it delegates to already, and with a `task` tool that names them.
 *
 * @param purposes   what each is good for, by name; shown to the model
 * @param resumable  it can continue its tasks, run them in the background, in groups, and be asked by them
 */
export function withDelegates(
  agent: AgentDefinition,
  others: readonly AgentDefinition[],
  purposes: Readonly<Record<string, string>> = {},
  options: { readonly resumable?: boolean } = {},
): AgentDefinition {
  const delegates = [...new Set([...agent.delegates, ...others.map(({ name }) => name)])];
  const choices = delegates.map((name) => ({ name, purpose: purposes[name] }));
  const tools = [...agent.tools];
  for (const tool of options.resumable === true ? taskTools(choices) : [taskTool(choices)]) {
    const at = tools.findIndex(({ name }) => name === tool.name);
    if (at === -1) tools.push(tool);
    else tools[at] = tool;
  }
  return defineAgent({ ...agent, delegates, tools });
}

/** The agents of an application. */
export interface AgentRegistry {
  names(): readonly string[];
  /** @throws RuntimeFault HF-5201 when there is none of that name */
  get(name: string): AgentDefinition;
  /** The agent and those it may come to delegate to, by name: what a conversation is started with. @throws RuntimeFault HF-5201 */
  withReachable(name: string): {
    readonly agent: AgentDefinition;
    readonly agents: Readonly<Record<string, AgentDefinition>>;
  };
}

/** @throws RuntimeFault HF-1001 when two agents have one name, HF-5201 when one delegates to an agent that is not there */
export function createAgentRegistry(agents: readonly AgentDefinition[]): AgentRegistry {
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  const names = [...byName.keys()];
  if (byName.size < agents.length) {
    const all = agents.map(({ name }) => name).join(", ");
    throw new RuntimeFault("HF-1001", `Agents: two have one name among ${all}. Rename one.`);
  }
  const get = (name: string): AgentDefinition => {
    const agent = byName.get(name);
    if (agent !== undefined) return agent;
    throw new RuntimeFault(
      "HF-5201",
      `Agent ${JSON.stringify(name)}: there is none. Known: ${names.join(", ") || "none"}.`,
    );
  };
  const reachable = (from: AgentDefinition): Readonly<Record<string, AgentDefinition>> => {
    const found = new Map<string, AgentDefinition>();
    const next = [...from.delegates];
    for (let name = next.pop(); name !== undefined; name = next.pop()) {
      if (found.has(name)) continue;
      const agent = get(name);
      found.set(name, agent);
      next.push(...agent.delegates);
    }
    return Object.fromEntries(found);
  };
  for (const agent of agents) reachable(agent);
  return { names: () => names, get, withReachable: (name) => ({ agent: get(name), agents: reachable(get(name)) }) };
}
