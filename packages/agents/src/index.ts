export {
  createAgentCatalogue,
  type AgentCatalogue,
  type CatalogueEntry,
  type CatalogueOptions,
} from "./agent-catalogue.ts";
export { readAgentFolder, type AgentFile, type AgentOrigin } from "./agent-folder.ts";
export {
  createAgentJobs,
  type AgentJobContext,
  type AgentJobs,
  type AgentJobsOptions,
  type WantedTranscript,
  type EffectReport,
  type TokenReport,
  type ToolJobOutput,
} from "./agent-jobs.ts";
export { type ModelTimeouts } from "./call-watchdog.ts";
export { createAgentRegistry, defineAgent, withDelegates, type AgentRegistry, type AgentSpec } from "./define-agent.ts";
export {
  defineTool,
  describeTool,
  MAX_RESULT_BYTES,
  type Tool,
  type ToolContext,
  type ToolDescription,
  type ToolOutput,
  type ToolSpec,
} from "./define-tool.ts";
export { ASK_OWNER, ASK_PARENT, taskTool, taskTools, type DelegateChoice } from "./delegation-tools.ts";
export { createFileTools, FILE_TOOLS, type FileToolsOptions } from "./file-tools.ts";
export { createLedgerClient, type LedgerClient, type LedgerClientOptions, type LedgerEffect } from "./ledger-client.ts";
export { type ModelCallContext, type ModelPort, type ModelRequest, type ModelRetry } from "./model-port.ts";
export { ModelFault } from "./model-problem.ts";
export { type HeldMoney, type MoneyRequest, type ReserveMoney } from "./paid-call.ts";
export { createOpenAiCompatibleModel, type OpenAiCompatibleOptions } from "./openai-compatible-model.ts";
export { agentNamed, createSurveyAgents, type SurveyModels } from "./survey-agents.ts";
export { ToolFault } from "./tool-fault.ts";
export { createToolbox, type Toolbox, type ToolResultContent } from "./toolbox.ts";
