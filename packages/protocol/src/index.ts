export { parseActorKey, formatActorKey, actorKey, childActorId, type Address } from "./address.ts";
export {
  ToolDefinition,
  ModelPrice,
  AgentLimits,
  AgentDefinition,
  agentDigest,
  INHERITED_MODEL,
  ToolCall,
  ToolResult,
  TranscriptMessage,
  ModelReply,
} from "./agent.ts";
export { Checkpoint, MAX_CHECKPOINT_LIVE } from "./checkpoint.ts";
export { ALL_FIELDS, BlobFields, BlobRef, withBlobFields } from "./blob-ref.ts";
export { ReplyTo, Envelope, MessageOutcome, MessageReply, type EnvelopeOf } from "./envelope.ts";
export {
  ERROR_CATALOGUE,
  isErrorCode,
  RuntimeFault,
  toPlainFault,
  type FaultConsequence,
  type ErrorCode,
  type PlainFault,
} from "./errors.ts";
export { Incarnation, nodeOf } from "./incarnation.ts";
export {
  Heartbeat,
  PartitionNeeds,
  NO_NEEDS,
  Lease,
  NodeLoad,
  Want,
  TypeHome,
  DrainRequest,
  RecoveryReport,
} from "./fleet.ts";
export { fnv1a32, fnv1a32Bytes, hash128, sha256Hex } from "./hash.ts";
export {
  Namespace,
  ExternalId,
  ActorId,
  ActorType,
  Partition,
  Pool,
  Genesis,
  ActorKey,
  NodeName,
  Seat,
} from "./ids.ts";
export { JournalEntry, JournalBatch } from "./journal-entry.ts";
export {
  AnnouncedEvent,
  encodeLifecycleEvent,
  EVENT_ID_HEADER,
  EventKind,
  isLaterEvent,
  isLifecycleEventType,
  LIFECYCLE_EVENTS,
  LifecycleEvent,
  parseEventId,
  tryDecodeLifecycleEvent,
  type EncodedEvent,
  type EventPlace,
  type LifecycleEventType,
} from "./lifecycle-event.ts";
export {
  RECORD_SOFT_LIMIT_BYTES,
  RECORD_HARD_LIMIT_BYTES,
  BLOB_THRESHOLD_BYTES,
  CHILD_INPUT_LIMIT_BYTES,
  MAX_STARTS_PER_COMMIT,
  MAX_CARRIED_EFFECTS,
  MAX_FOREIGN_LINKS,
  MAX_REMEMBERED_MESSAGE_IDS,
  MAX_MAILBOX_MESSAGES,
  MAX_OUTSIDE_EVENT_TYPE,
  MAX_MAILBOX_BYTES,
} from "./limits.ts";
export { Ancestor, Manifest, DEFAULT_POOL, DEFAULT_PARTITIONS, DEFAULT_SHARDS } from "./manifest.ts";
export { compareMachineVersions } from "./machine-version.ts";
export {
  allPartitionsOf,
  partitionOf,
  poolOf,
  shardOf,
  partitionsOf,
  rendezvousOwner,
  rendezvousScore,
  type PartitionScheme,
  type WeightedNode,
} from "./partition.ts";
export { AfterCrash, CrashPolicy, ClosePolicy, IDLE_TAG } from "./policies.ts";
export { actingFor, OnBehalf, ownerOf, Principal, principalToken, parsePrincipalToken } from "./principal.ts";
export {
  PROTOCOL_NAMES,
  workStateOfConversation,
  workStateOfTask,
  type ProtocolNames,
  type WorkState,
} from "./protocol-states.ts";
export {
  PlainEvent,
  RecordStatus,
  isTerminal,
  TimerEntry,
  ChildEntry,
  StoredSnapshot,
  ParentLink,
  Effect,
  MachineStamp,
  formatStamp,
  ActorRecord,
  RecordHeader,
  type EffectOf,
} from "./record.ts";
export {
  ConversationStatus,
  TaskStatus,
  TERMINAL_TASK_STATUSES,
  WaitStatus,
  WaitingOn,
  FailureCause,
} from "./status.ts";
export {
  AuditEntry,
  CommandOutcome,
  ATTEMPTS_REMEMBERED,
  OperatorCommand,
  OperatorVerb,
  StuckEntry,
  type StuckAttempt,
} from "./stuck.ts";
export { NEVER_RAISED, PANIC_KEY, PanicFlag, parsePanic, type PanicState } from "./stop-flag.ts";
export {
  exitKey,
  ExitReport,
  Generation,
  judgeAcknowledgement,
  KeptActor,
  MAX_KEPT_ACTORS,
  planActor,
  PLANNED_EXIT_CODE,
  proofOf,
  Restart,
  restartKey,
  RestartNote,
  RestartRequest,
  restartState,
  RestartVerdict,
  SecretProof,
  type AcknowledgementVerdict,
  type RestartFacts,
} from "./restart.ts";
export { RESEND_EVENT, ResendRequest } from "./resend-request.ts";
export { Suspect, Trial } from "./crash-loop.ts";
export {
  MAX_SUBJECT_BYTES,
  subjectsOf,
  parseErasureKey,
  parseInboxSubject,
  type Subjects,
  type InboxOrigin,
} from "./subjects.ts";
export {
  AskParentArguments,
  TaskArguments,
  TaskGroupArguments,
  TaskOutputArguments,
  TaskStopArguments,
} from "./task-arguments.ts";
export { TAG_KEY, VALUE_TAGS, type ValueTag } from "./tagged-values.ts";
export { Amount, costOf, MicroUsd, Sum, Tokens, type Cost } from "./money.ts";
export {
  Budget,
  Fence,
  FLEET_PRINCIPAL,
  GLOBAL_WALLET,
  Hold,
  Payer,
  WalletLimit,
  WalletScope,
  WalletState,
} from "./wallet.ts";
