export { readTranscript } from "./read-transcript.ts";
export { agentActors, agentDefinitions, MAX_DOCUMENT_BYTES, type AgentActorsOptions } from "./agent-actors.ts";
export { supervise, type SuperviseOptions } from "./supervise.ts";
