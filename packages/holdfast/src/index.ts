export {
  createClient,
  startNode,
  type Client,
  type CreateClientOptions,
  type NatsOptions,
  type Node,
  type NodeContext,
  type StartNodeOptions,
} from "./compose.ts";
export {
  defineActor,
  type ActorDefinition,
  type ActorIds,
  type JobContext,
  type JobDefinition,
  type PublicEvent,
  type RuntimeSettings,
} from "@holdfast/runtime";
