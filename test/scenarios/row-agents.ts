import { defineAgent, FILE_TOOLS, withDelegates } from "@holdfast/agents";
import type { ConversationStart } from "@holdfast/client";
import type { AgentDefinition, AgentLimits } from "@holdfast/protocol";

/** One tool call that a puppet is told to make. */
export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** A message that makes a puppet call tools, step by step; it answers with the results. */
export const steps = (...all: readonly (readonly Call[])[]): string => JSON.stringify(all);
/** The same calls as another text. */
export const stepsAgain = (...all: readonly (readonly Call[])[]): string => JSON.stringify(all, undefined, 1);
export const task = (subagent: string, prompt: string, more: Readonly<Record<string, unknown>> = {}): Call => ({
  name: "task",
  arguments: { subagent, prompt, ...more },
});

/** Answers when it is released. */
export const blocker = defineAgent({ name: "blocker", model: "blocker" });
/** Makes the same call for ever. */
export const stubborn = (limits: Partial<AgentLimits> = {}): AgentDefinition =>
  defineAgent({ name: "stubborn", model: "stubborn", tools: [FILE_TOOLS.listFiles], limits });

/** A puppet that may delegate to others, with whatever they delegate to. */
export function chiefOf(
  others: readonly AgentDefinition[],
  limits: Partial<AgentLimits> = {},
  options: { readonly resumable?: boolean } = {},
): Pick<ConversationStart, "agent"> & { readonly agents: Readonly<Record<string, AgentDefinition>> } {
  const puppet = defineAgent({ name: "chief", model: "puppet", limits });
  return {
    agent: withDelegates(puppet, others, {}, options),
    agents: Object.fromEntries(others.map((other) => [other.name, other])),
  };
}
