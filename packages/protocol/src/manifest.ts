import { z } from "zod";
import { Namespace, Pool } from "./ids.ts";

/**
 * The one key that says how a namespace is laid out. Written once by `create`, read by everyone, never overridden by the environment.
 * `generations` maps a stream name to its generation: a sequence of another generation means nothing.
 */
export const Manifest = z.object({
  v: z.literal(1),
  ns: Namespace,
  pools: z.record(Pool, z.int().min(1).max(1024)),
  shards: z.int().min(1).max(64),
  hash: z.literal("fnv1a32"),
  generations: z.record(z.string(), z.string().regex(/^[a-z0-9]{1,16}$/)),
});
export type Manifest = z.infer<typeof Manifest>;

export const DEFAULT_POOL = "d";
export const DEFAULT_PARTITIONS = 32;
export const DEFAULT_SHARDS = 8;
