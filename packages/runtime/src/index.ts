export {
  defineActor,
  type ActorDefinition,
  type ActorIds,
  type JobContext,
  type JobDefinition,
  type NoEffect,
  type PublicEvent,
  type RetentionWish,
} from "./actor-definition.ts";
export { chooseBlobs } from "./blobs/choose-blobs.ts";
export { FairSlots } from "./fair-slots.ts";
export { type NodeEnding } from "./node-ending.ts";
export { RuntimeNode } from "./runtime-node.ts";
export { type NodeProcess, type RuntimeNodeOptions } from "./runtime-node-options.ts";
export { compileTypes } from "./served-types.ts";
export { DEFAULT_SETTINGS, resolveSettings, type RuntimeSettings } from "./settings.ts";
