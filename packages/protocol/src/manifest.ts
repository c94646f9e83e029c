import { z } from "zod";
import { Namespace, Pool } from "./ids.ts";

/**
 * An earlier generation of a stream that goes on as a later one: a restored copy that ends earlier than the stream once did. Up to `upTo` its
 * sequences still name the same messages; beyond, they mean nothing.
 */
export const Ancestor = z.object({ generation: z.string(), upTo: z.int().min(0) });
export type Ancestor = z.infer<typeof Ancestor>;

/**
 * The one key that says how a namespace is laid out. Written once by `create`, read by everyone, never overridden by the environment.
 * `generations` maps a stream name to its generation: a sequence of another generation means nothing, but see `lineage`.
 */
export const Manifest = z.object({
  v: z.literal(1),
  ns: Namespace,
  pools: z.record(Pool, z.int().min(1).max(1024)),
  shards: z.int().min(1).max(64),
  hash: z.literal("fnv1a32"),
  generations: z.record(z.string(), z.string().regex(/^[a-z0-9]{1,16}$/)),
  /** Stream name → what it went on from, newest first. A stream that was created anew goes on from nothing. */
  lineage: z.record(z.string(), z.array(Ancestor)).optional(),
});
export type Manifest = z.infer<typeof Manifest>;

export const DEFAULT_POOL = "d";
export const DEFAULT_PARTITIONS = 32;
export const DEFAULT_SHARDS = 8;
