export { agentActors, MAX_DOCUMENT_BYTES, type AgentActorsOptions } from "./agent-actors.ts";
