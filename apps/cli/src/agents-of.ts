import { resolve } from "node:path";
import {
  ASK_OWNER,
  ASK_PARENT,
  createAgentCatalogue,
  createSurveyAgents,
  FILE_TOOLS,
  readAgentFolder,
  type AgentCatalogue,
} from "@holdfast/agents";
import type { Config } from "@holdfast/process";

/**
 * The agents of the demo with those of the folders that the environment names.
 *
 * @throws RuntimeFault HF-5206 when a file cannot be used
 */
export async function agentsOf(config: Config): Promise<AgentCatalogue> {
  const { surveyor, reader } = createSurveyAgents();
  const { HOLDFAST_AGENTS: project, HOLDFAST_USER_AGENTS: user } = config;
  return createAgentCatalogue({
    code: [surveyor, reader],
    files: [
      ...(await readAgentFolder(resolve(project), "project")),
      ...(user === undefined ? [] : await readAgentFolder(resolve(user), "user")),
    ],
    tools: [...Object.values(FILE_TOOLS), ASK_OWNER, ASK_PARENT],
  });
}
