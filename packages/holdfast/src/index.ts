export {
  createClient,
  createSubscriber,
  startNode,
  type Client,
  type CreateClientOptions,
  type NatsOptions,
  type Node,
  type NodeContext,
  type StartNodeOptions,
  type Subscriber,
} from "./compose.ts";
export { type ClientWindow, type EventsOptions, type ReceivedEvent } from "@holdfast/client";
export { renewNamespace, type RenewNamespaceOptions } from "./renew-namespace.ts";
export {
  defineActor,
  FairSlots,
  type ActorDefinition,
  type ActorIds,
  type JobContext,
  type JobDefinition,
  type NodeEnding,
  type PublicEvent,
  type RuntimeSettings,
} from "@holdfast/runtime";
export { replayJudge, type ReplayVerdict, type StoredBytes } from "./replay-bytes.ts";
export {
  compileActors,
  readForReplay,
  replayStored,
  type JournalLine,
  type StoredActorJournal,
  type StoredReplay,
  type StoredReplayOptions,
  type StoredStep,
} from "./replay-stored.ts";
export {
  differences,
  journaledStateJson,
  NOT_COMPARED,
  type CompiledMachine,
  type Difference,
  type ReplayEnd,
} from "@holdfast/durable";
