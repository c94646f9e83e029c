import { z } from "zod";
import { ActorKey, Partition } from "./ids.ts";

/** Most records a checkpoint names; 2,000 keys are below 256 KiB whatever their length. */
export const MAX_CHECKPOINT_LIVE = 2000;

/**
 * Where a successor may begin to look for work in a partition; key `<partition>._checkpoint`, in the bucket of the records themselves.
 * JSON.
 *
 * Every record of the partition whose newest value has a sequence up to `seq` and needs work is in `live`. It saves reading and is never
 * needed: absent, unreadable, of another generation or of another epoch than the lease before, everything is read.
 */
export const Checkpoint = z.object({
  v: z.literal(1),
  partition: Partition,
  /** Of the lease under which it was written. */
  epoch: z.number().int().min(1),
  /** Of the stream whose sequences these are. */
  generation: z.string(),
  seq: z.number().int().min(0),
  /** Key and sequence of the newest value known of it, lowest sequence first. */
  live: z.array(z.tuple([ActorKey, z.number()])).max(MAX_CHECKPOINT_LIVE),
  /** So many more need work than `live` may hold; `seq` lies below them, so that reading from there finds them. */
  unlisted: z.number(),
  /** Random token of the write attempt. */
  token: z.string(),
});
export type Checkpoint = z.infer<typeof Checkpoint>;
