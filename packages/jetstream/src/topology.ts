import { EventKind, partitionsOf, shardOf, subjectsOf, type Manifest } from "@holdfast/protocol";
import { nanos } from "@nats-io/transport-node";

/**
 * One stream as it must be. `config` holds JetStream's own field names and units (durations in nanoseconds); after creation each of them is
 * read back and compared. Fields not listed are the operator's.
 */
export interface StreamDeclaration {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly config: Readonly<Record<string, string | number | boolean>>;
}

/** What an installation may choose. Byte limits are reserved by the server at creation: their sum must fit its `max_file`. */
export interface TopologyOptions {
  /** 1 on a single server, 3 in production. */
  readonly replicas?: number | undefined;
  /** Limit of one inbox stream, bytes; a full one refuses publishers, visibly. Default 256 MiB. */
  readonly inboxBytes?: number | undefined;
  /** Limit of one stream of parked messages, bytes. Default 128 MiB. */
  readonly parkedBytes?: number | undefined;
  /** How long public events are kept, ms. Default 30 days. */
  readonly eventsMaxAgeMs?: number | undefined;
}

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Above the 512 KiB of a record by what frame and headers need. */
const MAX_VALUE_BYTES = 600 * 1024;
/** A message that the inbox took must fit with what is said about it where it is set aside. */
const MAX_PARKED_BYTES = MAX_VALUE_BYTES + 16 * 1024;
/** Ids of accepted messages are remembered this long by the server. An optimisation: receivers dedupe by id themselves. */
const DUPLICATE_WINDOW_MS = 10 * 60 * 1000;

const base = (replicas: number): StreamDeclaration["config"] => ({
  retention: "limits",
  storage: "file",
  num_replicas: replicas,
  // Without it the server makes room by dropping the oldest message, which somebody was told is stored.
  discard: "new",
  max_age: 0,
  max_msgs: -1,
  max_bytes: -1,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  allow_rollup_hdrs: false,
  deny_delete: false,
  deny_purge: false,
  sealed: false,
  no_ack: false,
});

/** Bucket with one value per key, as key-value clients expect it. */
function bucket(name: string, replicas: number, config: StreamDeclaration["config"] = {}): StreamDeclaration {
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    config: {
      ...base(replicas),
      max_msgs_per_subject: 1,
      duplicate_window: nanos(2 * 60 * 1000),
      allow_rollup_hdrs: true,
      allow_direct: true,
      deny_delete: true,
      ...config,
    },
  };
}

/** Bucket of manifest, heartbeats, leases, flags. Exists before anything else: the manifest is in it. */
export const fleetDeclaration = (ns: string, options: TopologyOptions = {}): StreamDeclaration =>
  bucket(subjectsOf(ns).fleetBucket, options.replicas ?? 1, { max_msg_size: MAX_VALUE_BYTES });

/** Every other stream and bucket of a namespace. Pure. */
export function topologyOf(
  manifest: Pick<Manifest, "ns" | "pools" | "shards">,
  options: TopologyOptions = {},
): readonly StreamDeclaration[] {
  const names = subjectsOf(manifest.ns);
  const replicas = options.replicas ?? 1;
  const partitions = Object.keys(manifest.pools).flatMap((pool) => partitionsOf(manifest, pool));
  const declarations: StreamDeclaration[] = [];

  for (let shard = 0; shard < manifest.shards; shard++) {
    const own = partitions.filter((partition) => shardOf(manifest, partition) === shard);
    // A shard without partitions would be a stream without subjects, which takes its own name as one.
    if (own.length === 0) continue;
    const perPartition = (of: (partition: string) => readonly string[]): readonly string[] => own.flatMap(of);
    declarations.push(
      bucket(names.actorsBucket(shard), replicas, { max_msg_size: MAX_VALUE_BYTES }),
      {
        name: names.inboxStream(shard),
        subjects: perPartition((partition) => names.inboxFilters(partition)),
        config: { ...base(replicas), max_bytes: options.inboxBytes ?? 256 * MIB, max_msg_size: MAX_VALUE_BYTES },
      },
      {
        name: names.parkedStream(shard),
        subjects: perPartition((partition) => [names.parked(`${partition}.>`)]),
        config: { ...base(replicas), max_bytes: options.parkedBytes ?? 128 * MIB, max_msg_size: MAX_PARKED_BYTES },
      },
      {
        name: names.journalStream(shard),
        subjects: perPartition((partition) => [names.journal(`${partition}.>`)]),
        config: { ...base(replicas), max_msg_size: MAX_VALUE_BYTES },
      },
    );
  }

  const days = nanos(options.eventsMaxAgeMs ?? 30 * DAY_MS);
  declarations.push(
    {
      name: names.eventsStream(0),
      subjects: EventKind.options.map((kind) => names.event(kind, [">"])),
      config: { ...base(replicas), max_age: days, discard: "old", allow_direct: true },
    },
    bucket(names.stuckBucket, replicas, { max_msg_size: MAX_PARKED_BYTES }),
    bucket(names.idempotencyBucket, replicas, { max_age: nanos(DAY_MS), max_msg_size: MAX_VALUE_BYTES }),
    {
      name: `OBJ_${names.blobsBucket}`,
      subjects: [`$O.${names.blobsBucket}.C.>`, `$O.${names.blobsBucket}.M.>`],
      config: {
        ...base(replicas),
        duplicate_window: nanos(2 * 60 * 1000),
        allow_rollup_hdrs: true,
        allow_direct: true,
      },
    },
    {
      name: names.auditStream,
      subjects: [names.audit(">")],
      config: { ...base(replicas), deny_delete: true, deny_purge: true },
    },
  );
  return declarations;
}
