import { z } from "zod";
import { Incarnation } from "./incarnation.ts";
import { ActorType, NodeName, Partition, Pool } from "./ids.ts";

/** What a node says about itself once per heartbeat; key `node.<name>`. JSON. */
export const Heartbeat = z.object({
  v: z.literal(1),
  name: NodeName,
  incarnation: Incarnation,
  startedAtMs: z.number(),
  pools: z.array(Pool),
  types: z.array(ActorType),
  formats: z.array(z.number()),
  machines: z.record(z.string(), z.string()),
  state: z.enum(["joining", "serving", "draining", "left"]),
  actors: z.number(),
  jobs: z.number(),
  /** Keys of jobs this process still runs for partitions it no longer owns. */
  custody: z.array(z.string()).max(512),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

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
