export { type BlobStore } from "./blob-store.ts";
export { type BlobSweepStore, type OldBlob } from "./blob-sweep-store.ts";
export { type Clock } from "./clock.ts";
export {
  CRASH_POINTS,
  noCrashPoints,
  RETENTION_CRASH_POINTS,
  type CrashPoint,
  type CrashPoints,
} from "./crash-points.ts";
export { type FleetRegistry, type FleetValue } from "./fleet-registry.ts";
export { type Journal, type JournalLine } from "./journal.ts";
export {
  type InboxMessage,
  type InboxPosition,
  type InboxSubscription,
  type MessageLog,
  type PublishOutcome,
} from "./message-log.ts";
export { type Random } from "./random.ts";
export {
  type CommitOutcome,
  type CommitRequest,
  type RecordStore,
  type ScanEntry,
  type ScanPart,
  type ScanRequest,
  type StoredValue,
} from "./record-store.ts";
export {
  type EndedRecord,
  type ErasureOrder,
  type ErasureOrders,
  type JournalEnd,
  type RecordSurvey,
  type RetentionStore,
  type WantedRecords,
} from "./retention-store.ts";
export { silentTelemetry, type Telemetry } from "./telemetry.ts";
