export {
  defineActor,
  type ActorDefinition,
  type ActorIds,
  type JobContext,
  type JobDefinition,
  type NoEffect,
  type PublicEvent,
} from "./actor-definition.ts";
export { RuntimeNode, type RuntimeNodeOptions } from "./runtime-node.ts";
export { DEFAULT_SETTINGS, resolveSettings, type RuntimeSettings } from "./settings.ts";
