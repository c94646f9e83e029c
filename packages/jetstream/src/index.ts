export { blobBucket, type BlobBucket, type StoredBlob } from "./blob-bucket.ts";
export { barrierScan, type BarrierScanOptions } from "./barrier-scan.ts";
export { compareAndSet, type CompareAndSetOutcome, type CompareAndSetRequest } from "./compare-and-set.ts";
export { connectNats, type ConnectOptions } from "./connection.ts";
export { ensureStream } from "./ensure-stream.ts";
export { filteredHistory, lastSeqOf, subjectHistory, type FilteredHistoryOptions } from "./filtered-history.ts";
export { headerBlock, MESSAGE_ID_HEADER } from "./header-block.ts";
export {
  idempotencyStore,
  scopedMessageId,
  type ClaimOutcome,
  type IdempotencyScope,
  type IdempotencyStore,
} from "./idempotency-store.ts";
export { KV_OPERATION_HEADER, watchBucket, type KvValue, type KvWatchOptions } from "./kv-watch.ts";
export { readLast, readNext, readSeq, type ReadOptions, type StoredMessage } from "./leader-read.ts";
export { listSubjects, type ListSubjectsOptions } from "./list-subjects.ts";
export { Link, type CoreMessage, type LinkStatus } from "./link.ts";
export { type NamespaceLayout } from "./manifest.ts";
export {
  ensureNamespace,
  openNamespace,
  renewGenerations,
  type EnsureNamespaceOptions,
  type OpenNamespace,
} from "./namespace.ts";
export { messageFlow, type MessageFlowOptions } from "./message-flow.ts";
export { OrderedReader, type OrderedReaderOptions, type SeenMessage } from "./ordered-reader.ts";
export { publishStored, type PublishRequest, type StorePublishOutcome } from "./publish.ts";
export { publishUnacked } from "./publish-unacked.ts";
export { purgeBelow, type PurgeOptions } from "./purge.ts";
export { readHeaders, type ReadHeadersOptions } from "./read-headers.ts";
export { MINIMUM_SERVER_VERSION } from "./server-version.ts";
export { streamPosition, type StreamPosition } from "./stream-info.ts";
export { type StreamMessage } from "./stream-message.ts";
export { fleetDeclaration, topologyOf, type StreamDeclaration, type TopologyOptions } from "./topology.ts";
export { LiveNamespace } from "./live-namespace.ts";
export { readTypeHomes, settleTypeHomes } from "./type-homes.ts";
export { countFrom, serverTimeMs } from "./count-from.ts";
