export { SimModelFault } from "./sim-model-fault.ts";
export { startSimModel } from "./start-sim-model.ts";
export type { SimModel, SimModelOptions } from "./start-sim-model.ts";
export type { RequestQuery, RequestState, SeenRequest, WaitResult } from "./request-log.ts";
export type { Fault, Script, ScriptInput, ScriptStep, ScriptToolCall } from "./script.ts";
export type { ChatMessage } from "./chat-request.ts";
