import type { Codec } from "@holdfast/codec";
import type { CompiledMachine, TextHash } from "@holdfast/durable";
import type { Ancestor, PartitionNeeds, PartitionScheme } from "@holdfast/protocol";
import type { ActorDefinition } from "./actor-definition.ts";
import type { BrokerTime } from "./broker-time.ts";
import type { PayloadStore } from "./blobs/payload-store.ts";
import type { CrashEvidence } from "./crash-loop/crash-evidence.ts";
import type { PartitionTrial } from "./crash-loop/partition-trial.ts";
import type { FlowControl } from "./flow-control.ts";
import type { CutOffWork } from "./holds/cut-off-work.ts";
import type { JobAttempt, JobTable } from "./job-table.ts";
import type {
  CrashPoints,
  Clock,
  InboxMessage,
  Journal,
  MessageLog,
  Random,
  RecordStore,
  Telemetry,
} from "./ports/index.ts";
import type { Linger } from "./linger.ts";
import type { Quarantine } from "./quarantine/quarantine.ts";
import type { RestingActors } from "./counterparts/resting-actors.ts";
import type { KnownWork } from "./rehydration/known-work.ts";
import type { RuntimeSettings } from "./settings.ts";
import type { TimerQueue } from "./timer-queue.ts";
import type { WriteSwitch } from "./write-switch.ts";

/** An actor type as this node serves it. */
export interface ServedType {
  readonly definition: ActorDefinition;
  /** The newest of `versions`. */
  readonly compiled: CompiledMachine;
  /** Every machine of this build for the type, oldest first. */
  readonly versions: readonly CompiledMachine[];
}

/** What every cell of a node shares. */
export interface NodeServices {
  readonly node: string;
  readonly incarnation: string;
  readonly scheme: PartitionScheme;
  readonly types: ReadonlyMap<string, ServedType>;
  readonly codec: Codec;
  readonly textHash: TextHash | undefined;
  readonly records: RecordStore;
  readonly log: MessageLog;
  readonly journal: Journal;
  readonly payloads: PayloadStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly time: BrokerTime;
  readonly jobs: JobTable;
  readonly writeSwitch: WriteSwitch;
  readonly quarantine: Quarantine;
  readonly evidence: CrashEvidence;
  readonly crashPoints: CrashPoints;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  /** Where journal entries wait that nobody else waits for. */
  readonly journalLinger: Linger;
  readonly flow: FlowControl;
}

/** A job whose turn has come. */
export interface JobTurn {
  readonly childId: string;
  readonly jobKey: string;
  /** Revision of the commit that decided it. */
  readonly rev: number;
}

/** What a cell needs of the partition it lives in. */
export interface CellHost {
  readonly partition: string;
  readonly epoch: number;
  readonly generation: string;
  readonly lineage: readonly Ancestor[];
  readonly timers: TimerQueue;
  /** Told of every commit, for the checkpoint. */
  readonly work: KnownWork;
  /** Told of every record, for the watch over counterparts. */
  readonly resting: RestingActors;
  readonly signal: AbortSignal;
  /** Present while its actors are tried one by one: former owners died in a row. */
  readonly trial: PartitionTrial | undefined;
  /** Present when its work was cut off by a stop of the fleet: what was pending then does not go on by itself. */
  readonly cutOff: CutOffWork | undefined;
  /** Mailbox was read up to the claim: timers and recovered jobs may run (F23). */
  readonly isCaughtUp: boolean;
  /** The lease is proven fresh now; checked at the point of use (F36). */
  mayStartEffects(): boolean;
  /** Whether the lease is proven fresh, also while the partition is being given away. */
  isLeaseFresh(): boolean;
  /** Another node's live process still runs this job (F22), or a marked attempt's runner is not proven gone. */
  isRunElsewhere(jobKey: string, runner: string | undefined): boolean;
  /** Prepares a job of one of this partition's actors, loading it when it has left memory. */
  beginJob(key: string, turn: JobTurn): Promise<JobAttempt | undefined>;
  /** The actor gives its place in memory back; the sequence of its record then. */
  leftMemory(key: string, seq: number): void;
  /** Lists in the lease what is about to be written, so that nobody takes the partition who cannot read it (F31). Nothing when it is listed. */
  listNeeds(needs: PartitionNeeds): Promise<boolean> | undefined;
  considered(message: InboxMessage): void;
  /** Something held up a job of this actor: ask it again after the next heartbeat. */
  recheckLater(key: string): void;
  /** A record with a greater epoch was seen (I6). */
  fenced(epoch: number): void;
  /** Messages for this key lie in the parked stream. */
  hasParked(key: string): boolean;
  parked(key: string): void;
  unparked(key: string): void;
  /** A message of an actor was set aside; broker time at which it is offered again, whatever happens meanwhile. */
  waits(key: string, dueMs: number): void;
  /** For `stuck` lists and counters. */
  report(key: string, state: CellReport): void;
  /** What was reported is over. */
  resolved(key: string, ...kinds: readonly CellReport["kind"][]): void;
  count(counter: CellCounter): void;
}

export interface CellReport {
  readonly kind:
    | "parked"
    | "quarantined"
    | "gap"
    | "unserved"
    | "backpressure"
    | "custody"
    | "ambiguous"
    | "orphan-messages";
  readonly why: string;
}

export type CellCounter =
  | "committed"
  | "dropped"
  /** Of these, what nothing waited for any more. */
  | "late"
  | "duplicates"
  | "stale"
  | "unknown"
  | "restored"
  | "resent"
  | "reissued"
  | "adopted"
  | "parked"
  | "quarantined";
