import type { Codec } from "@holdfast/codec";
import type { TextHash } from "@holdfast/durable";
import type { PartitionScheme } from "@holdfast/protocol";
import type { ActorDefinition } from "./actor-definition.ts";
import type {
  BlobStore,
  BlobSweepStore,
  Clock,
  CrashPoints,
  FleetRegistry,
  Journal,
  MessageLog,
  Random,
  RecordStore,
  ErasureOrders,
  RetentionStore,
  Telemetry,
} from "./ports/index.ts";
import type { RuntimeSettings } from "./settings.ts";

/** What a node is made of. Connections are the caller's. */
export interface RuntimeNodeOptions {
  readonly name: string;
  readonly definitions: readonly ActorDefinition[];
  readonly pools: readonly string[];
  /** Share of partitions relative to other nodes; default 1. */
  readonly weight?: number;
  /** What its deployer calls this build; shown to operators. */
  readonly build?: string;
  /** Layout of the namespace. May grow by pools while the node runs. */
  readonly scheme: PartitionScheme;
  /** Somebody changed the layout: `scheme` is to be brought up to date. */
  readonly layoutChanged?: () => Promise<void>;
  /** Pools of actor types that other nodes serve. */
  readonly homes?: ReadonlyMap<string, string>;
  readonly codec: Codec;
  /** Default: the pure one of the interpreter. */
  readonly textHash?: TextHash;
  /** Record formats this build reads; default: those of its codec. */
  readonly readableFormats?: readonly number[];
  readonly ports: {
    readonly records: RecordStore;
    readonly log: MessageLog;
    readonly journal: Journal;
    readonly fleet: FleetRegistry;
    readonly stuck: FleetRegistry;
    readonly blobs: BlobStore;
    /** Absent: nothing is ever removed. */
    readonly retention?: RetentionStore;
    /** Absent: what an erased actor started stays until its own time is over. */
    readonly erasures?: ErasureOrders;
    readonly blobSweep?: BlobSweepStore;
  };
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  readonly crashPoints: CrashPoints;
  readonly settings?: Partial<RuntimeSettings>;
  /** What a planned restart of this process says of it; absent: it cannot be acknowledged by a supervisor. */
  readonly process?: NodeProcess;
}

/** The process that a node lives in, for its planned restart. */
export interface NodeProcess {
  readonly pid: number;
  /** By the clock of its machine, Unix ms. */
  readonly startedAtMs: number;
  /** SHA-256 of the secret with which the one who started it acknowledges its end. */
  readonly exitProof?: string | undefined;
  /** One-shot token of the restart that it is the successor of. */
  readonly successorToken?: string | undefined;
}
