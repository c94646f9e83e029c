import { z } from "zod";
import { Incarnation } from "./incarnation.ts";
import { ActorType, NodeName, Partition, Pool } from "./ids.ts";
import { RestartNote, RestartRequest } from "./restart.ts";

/** What a node says about itself once per heartbeat; key `node.<name>`. JSON. */
export const Heartbeat = z.object({
  v: z.literal(1),
  name: NodeName,
  incarnation: Incarnation,
  startedAtMs: z.number(),
  pools: z.array(Pool),
  /** Share of partitions relative to other nodes of a pool; 1 when absent. */
  weight: z.number().positive().optional(),
  /** Silence after which it counts as dead, ms; 3,000 when absent. */
  ttlMs: z.number().positive().optional(),
  /** What its deployer calls this build. */
  build: z.string().max(64).optional(),
  types: z.array(ActorType),
  /** Formats of records it can read. */
  formats: z.array(z.number()),
  /** Newest machine it runs of each type: `<version>#<start of its hash>`. */
  machines: z.record(z.string(), z.string()),
  state: z.enum(["joining", "serving", "draining", "left"]),
  actors: z.number(),
  jobs: z.number(),
  /** Keys of jobs this process still runs for partitions it no longer owns. */
  custody: z.array(z.string()).max(512),
  /** Revision of the newest stop flag that it has obeyed; absent while there was none, and in builds that know of none. */
  stopRevision: z.number().int().optional(),
  /** Types of it that are held after an end that nobody acknowledged; none when absent. */
  heldTypes: z.array(ActorType).optional(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

/** What a node must be able to read to serve a partition. Only grows: what was written once may still be there. */
export const PartitionNeeds = z.object({
  /** Formats of records that were written there. */
  formats: z.array(z.number()),
  /** Actor type → newest machine version that wrote there; empty when its messages wait for a node that serves it. */
  machines: z.record(ActorType, z.string()),
});
export type PartitionNeeds = z.infer<typeof PartitionNeeds>;

export const NO_NEEDS: PartitionNeeds = { formats: [], machines: {} };

/** Ownership of a partition; key `lease.<partition>`. JSON. Written only to claim, release or advance the cursor. */
export const Lease = z.object({
  v: z.literal(1),
  partition: Partition,
  /** Grows by one with every claim. */
  epoch: z.number().int().min(1),
  state: z.enum(["held", "released"]),
  holder: Incarnation,
  /** Lowest inbox sequence not yet considered, and the highest the holder saw, both of `generation`. */
  generation: z.string(),
  cursor: z.number(),
  highest: z.number(),
  /** Sequence of the newest record that an owner had stored, and the generation of the bucket that counted it; nothing when absent. */
  records: z.object({ generation: z.string(), highest: z.number() }).optional(),
  /**
   * Messages and outcomes that came when nothing waited for them any more and changed nothing, repeated outcomes among them: since the
   * partition is there. 0 when absent.
   */
  late: z.number().int().min(0).optional(),
  /** Claims whose former holder had died, since the last owner that was taken down by nothing for a while; 0 when absent. */
  crashes: z.number().int().min(0).optional(),
  /** Nothing when absent. */
  needs: PartitionNeeds.optional(),
  /** Newest stop flag that a claim knew of, and whether the work that it had cut off was set aside since; absent while there was none. */
  stop: z.object({ revision: z.number().int(), isSettled: z.boolean() }).optional(),
  /**
   * A holder that ended without having left, until actors that are to be held after that were set aside. Only nodes that serve such actors take
   * note of it.
   */
  crash: z.object({ holder: Incarnation }).optional(),
  /** It was released for this planned restart; until its actors were taken up, or set aside, by the next owner. */
  restart: RestartNote.optional(),
  /** Broker time never goes below this for the partition. */
  floorMs: z.number(),
  /** Random token of the write attempt. */
  token: z.string(),
});
export type Lease = z.infer<typeof Lease>;

/** A node asks the owner for a partition; key `want.<partition>`. JSON. */
export const Want = z.object({ v: z.literal(1), partition: Partition, incarnation: Incarnation });
export type Want = z.infer<typeof Want>;

/** Partitions of a node that have too much waiting; key `busy.<name>`. JSON. Written only while there is something to say. */
export const NodeLoad = z.object({
  v: z.literal(1),
  node: NodeName,
  /** For how long this holds, ms, counted from when it arrives. */
  validMs: z.number().min(0).max(600_000),
  partitions: z.record(
    z.string(),
    z.object({
      waiting: z.number().int().min(0),
      /** When a sender from outside should come back, ms. */
      retryAfterMs: z.number().int().min(0),
    }),
  ),
});
export type NodeLoad = z.infer<typeof NodeLoad>;
/** Pool of an actor type, fixed when its first node came; key `type.<type>`. JSON. Senders read it, also when no node serves the type. */
export const TypeHome = z.object({ v: z.literal(1), type: ActorType, pool: Pool, token: z.string() });
export type TypeHome = z.infer<typeof TypeHome>;

/** An operator asks a node to leave as planned; key `drain.<node>`. JSON. Meant for one incarnation: a later one does not obey. */
export const DrainRequest = z.object({
  v: z.literal(1),
  node: NodeName,
  incarnation: Incarnation,
  by: z.string().max(64),
  /** It is to come back: it prepares that before it leaves, and ends with PLANNED_EXIT_CODE. */
  restart: RestartRequest.optional(),
});
export type DrainRequest = z.infer<typeof DrainRequest>;

/** What one takeover found and did. JSON, key `report.<partition>`. */
export const RecoveryReport = z.object({
  v: z.literal(1),
  partition: Partition,
  epoch: z.number(),
  incarnation: Incarnation,
  previousHolder: z.string().optional(),
  scanned: z.number(),
  found: z.number(),
  restored: z.number(),
  resent: z.number(),
  reissued: z.number(),
  adopted: z.number(),
  parked: z.number(),
  quarantined: z.number(),
  held: z.array(z.object({ key: z.string(), why: z.string() })).max(100),
  /** From the last sign of life of the former holder to the claim. */
  detectMs: z.number().optional(),
  /** Asking where the inbox stands, and the compare-and-set on the lease. */
  claimMs: z.number().optional(),
  /** Checkpoint, barrier and scan; shared by the partitions of a shard that are taken together. */
  readMs: z.number(),
  /** Sequence from which the scan looked; 0: a full scan. */
  fromSeq: z.number().optional(),
  /** Loading what was found. */
  restoreMs: z.number().optional(),
  /** Reading the mailbox up to now, before timers and recovered jobs run. */
  catchUpMs: z.number().optional(),
  durationMs: z.number(),
  atMs: z.number(),
});
export type RecoveryReport = z.infer<typeof RecoveryReport>;
