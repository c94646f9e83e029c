import {
  agentDigest,
  AgentDefinition,
  INHERITED_MODEL,
  RuntimeFault,
  toPlainFault,
  type ToolDefinition,
} from "@holdfast/protocol";
import { z } from "zod";
import { misfit } from "./agent-file.ts";
import type { AgentFile, AgentOrigin } from "./agent-folder.ts";
import { createAgentRegistry, defineAgent, withDelegates, type AgentRegistry } from "./define-agent.ts";

/** An agent and where its definition comes from. */
export interface CatalogueEntry {
  readonly agent: AgentDefinition;
  readonly origin: AgentOrigin;
  /** Absent for one that the application defines. */
  readonly file?: string;
  readonly digest: string;
}

/** Agents of an application and of files. */
export interface AgentCatalogue extends Pick<AgentRegistry, "names" | "get"> {
  entries(): readonly CatalogueEntry[];
  /**
   * An agent that somebody talks to, with those it may come to delegate to.
   *
   * @param model  for all of them; default: that of each definition
   * @throws RuntimeFault HF-5201 when there is none of that name, HF-5206 when it would inherit its model from nobody
   */
  forConversation(name: string, model?: string): ReturnType<AgentRegistry["withReachable"]>;
}

export interface CatalogueOptions {
  /** Agents that the application defines. */
  readonly code: readonly AgentDefinition[];
  /** One of the project takes the place of one of the user. */
  readonly files?: readonly AgentFile[];
  /** Tools that files may name. */
  readonly tools?: readonly ToolDefinition[];
}

/**
 * Puts agents together.
 *
 * @throws RuntimeFault HF-5206 when a file names an unknown tool or agent, or has the name of an agent of the application; HF-1001 when two
 *   of the application have one name
 */
export function createAgentCatalogue({ code, files = [], tools = [] }: CatalogueOptions): AgentCatalogue {
  const project = new Set(files.flatMap(({ origin, name }) => (origin === "project" ? [name] : [])));
  const inForce = files.filter(({ origin, name }) => origin === "project" || !project.has(name));
  for (const { name, file } of inForce) {
    if (code.some((agent) => agent.name === name))
      throw misfit(file, `the name ${name} is taken by an agent of the application`);
  }
  const plain = inForce.map((file) => ({ ...file, agent: agentOf(file, tools) }));
  const known = new Map([...code, ...plain.map(({ agent }) => agent)].map((agent) => [agent.name, agent]));
  const entries: readonly CatalogueEntry[] = [
    ...code.map((agent) => ({ agent, origin: "code" as const, digest: agentDigest(agent) })),
    ...plain.map(({ agent, origin, file, fields }) => {
      const whole = delegating(agent, file, fields, known);
      return { agent: whole, origin, file, digest: agentDigest(whole) };
    }),
  ];
  const registry = createAgentRegistry(entries.map(({ agent }) => agent));
  return {
    names: () => registry.names(),
    get: (name) => registry.get(name),
    entries: () => entries,
    forConversation: (name, model) => {
      const { agent, agents } = registry.withReachable(name);
      if (model === undefined && agent.model === INHERITED_MODEL) {
        throw new RuntimeFault(
          "HF-5206",
          `Agent ${name}: it inherits its model, and nobody delegates to it here. Name a model in its definition, or set HOLDFAST_MODEL.`,
        );
      }
      const speaking = (one: AgentDefinition): AgentDefinition => (model === undefined ? one : { ...one, model });
      return {
        agent: speaking(agent),
        agents: Object.fromEntries(Object.entries(agents).map(([key, one]) => [key, speaking(one)])),
      };
    },
  };
}

function agentOf({ file, name, fields }: AgentFile, tools: readonly ToolDefinition[]): AgentDefinition {
  const chosen = fields.tools.map((wanted) => {
    const tool = tools.find((one) => one.name === wanted);
    const known = tools.map((one) => one.name).join(", ") || "none";
    if (tool === undefined) throw misfit(file, `tools: there is no ${wanted}; known: ${known}`);
    return tool;
  });
  const { model, description, instructions, prices, max_budget_per_run: budget } = fields;
  const limits = { ...fields.limits, ...(budget !== undefined && { maxCostMicroUsd: Math.ceil(budget * 1_000_000) }) };
  const parsed = AgentDefinition.safeParse({
    name,
    model,
    instructions,
    limits,
    tools: chosen,
    ...(description !== undefined && { description }),
    ...(prices !== undefined && { prices }),
  });
  if (!parsed.success) throw misfit(file, z.prettifyError(parsed.error));
  try {
    return defineAgent(parsed.data);
  } catch (error) {
    throw misfit(file, toPlainFault(error, "HF-1001").message, error);
  }
}

function delegating(
  agent: AgentDefinition,
  file: string,
  { delegates, resumable }: AgentFile["fields"],
  known: ReadonlyMap<string, AgentDefinition>,
): AgentDefinition {
  if (delegates.length === 0) return agent;
  const others = delegates.map((name) => {
    const other = known.get(name);
    if (other === undefined)
      throw misfit(file, `delegates: there is no agent ${name}; known: ${[...known.keys()].join(", ")}`);
    return other;
  });
  const purposes = others.flatMap(({ name, description }) => (description === undefined ? [] : [[name, description]]));
  return withDelegates(agent, others, Object.fromEntries(purposes), { resumable });
}
