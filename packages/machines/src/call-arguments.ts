import { AgentDefinition } from "@holdfast/protocol";
import { z } from "zod";
import { MAX_MESSAGE_CHARACTERS } from "./conversation-input.ts";
import { MAX_DELAY_MS } from "./task-input.ts";

/** Arguments of a tool of kind `delegate`. Those of kind `ask` are a `Question`. */
export const DelegateArguments = z.object({
  subagent: z.string().describe("Name of the agent that is to do the work."),
  prompt: z.string().min(1).max(MAX_MESSAGE_CHARACTERS).describe("The whole assignment; the agent knows nothing else."),
  description: z.string().max(200).optional().describe("A few words for lists."),
  deadlineMs: z.int().min(1000).max(MAX_DELAY_MS).optional().describe("Milliseconds after which it is stopped."),
});
export type DelegateArguments = Readonly<z.infer<typeof DelegateArguments>>;

type Agents = Readonly<Record<string, AgentDefinition>>;

/** The definitions an agent may come to need: those it may delegate to, those they may delegate to, and so on. */
export function reachableAgents(agents: Agents, from: AgentDefinition): Agents {
  const found = new Map<string, AgentDefinition>();
  const next = [...from.delegates];
  for (let name = next.pop(); name !== undefined; name = next.pop()) {
    const agent = Object.hasOwn(agents, name) ? agents[name] : undefined;
    if (agent === undefined || found.has(name)) continue;
    found.set(name, agent);
    next.push(...agent.delegates);
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
