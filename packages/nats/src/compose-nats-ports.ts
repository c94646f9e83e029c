import type { Link, OpenNamespace } from "@holdfast/jetstream";
import type {
  BlobStore,
  BlobSweepStore,
  ErasureOrders,
  FleetRegistry,
  Journal,
  MessageLog,
  RecordStore,
  RetentionStore,
} from "@holdfast/runtime/ports";
import { lineOfLeases } from "./line-of-leases.ts";
import { namespaceStreams } from "./namespace-streams.ts";
import { NatsBlobSweepStore } from "./nats-blob-sweep-store.ts";
import { NatsBlobStore } from "./nats-blob-store.ts";
import { NatsErasureOrders } from "./nats-erasure-orders.ts";
import { NatsFleetRegistry } from "./nats-fleet-registry.ts";
import { NatsJournal } from "./nats-journal.ts";
import { NatsMessageLog, type MessageLogNotices } from "./nats-message-log.ts";
import { NatsRetentionStore } from "./nats-retention-store.ts";
import { NatsRecordStore } from "./nats-record-store.ts";

export interface NatsPorts {
  readonly records: RecordStore;
  readonly log: MessageLog;
  readonly journal: Journal;
  readonly fleet: FleetRegistry;
  readonly stuck: FleetRegistry;
  readonly blobs: BlobStore;
  readonly retention: RetentionStore;
  readonly erasures: ErasureOrders;
  readonly blobSweep: BlobSweepStore;
}

export interface NatsPortsOptions extends Partial<MessageLogNotices> {
  /** Token of a stored record, from its clear header. */
  readonly tokenOf: (bytes: Uint8Array) => string | undefined;
  /** A connection for the fleet bucket alone; default: the one of the work. */
  readonly fleetLink?: Link;
}

/** The ports of one node over one connection, or two, and one open namespace. A fault that is not listened to ends its reader silently: listen. */
export function composeNatsPorts(link: Link, namespace: OpenNamespace, options: NatsPortsOptions): NatsPorts {
  const streams = namespaceStreams(namespace);
  const onFault = options.onFault ?? (() => undefined);
  const onUnreadable = options.onUnreadable ?? (() => undefined);
  const fleetOf = (own: Link | undefined): FleetRegistry =>
    own === undefined
      ? new NatsFleetRegistry(link, streams, onFault)
      : lineOfLeases(new NatsFleetRegistry(own, streams, onFault), link);
  return {
    records: new NatsRecordStore(link, streams, options.tokenOf),
    log: new NatsMessageLog(link, streams, { onFault, onUnreadable }),
    journal: new NatsJournal(link, streams),
    fleet: fleetOf(options.fleetLink),
    stuck: new NatsFleetRegistry(link, streams, onFault, undefined, streams.subjects.stuckBucket),
    blobs: new NatsBlobStore(link, streams),
    retention: new NatsRetentionStore(link, streams),
    erasures: new NatsErasureOrders(link, streams),
    blobSweep: new NatsBlobSweepStore(link, streams),
  };
}
