import type { Codec } from "@holdfast/codec";
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
  RetentionStore,
  Telemetry,
} from "./ports/index.ts";
import type { RuntimeSettings } from "./settings.ts";

/** What a node is made of. Connections are the caller's. */
export interface RuntimeNodeOptions {
  readonly name: string;
  readonly definitions: readonly ActorDefinition[];
  readonly pools: readonly string[];
  readonly scheme: PartitionScheme;
  readonly codec: Codec;
  readonly ports: {
    readonly records: RecordStore;
    readonly log: MessageLog;
    readonly journal: Journal;
    readonly fleet: FleetRegistry;
    readonly blobs: BlobStore;
    /** Absent: nothing is ever removed. */
    readonly retention?: RetentionStore;
    readonly blobSweep?: BlobSweepStore;
  };
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  readonly crashPoints: CrashPoints;
  readonly settings?: Partial<RuntimeSettings>;
}
