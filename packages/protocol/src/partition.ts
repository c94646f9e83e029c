import { RuntimeFault } from "./errors.ts";
import { fnv1a32 } from "./hash.ts";

/** What of the namespace manifest decides where an actor lives. */
export interface PartitionScheme {
  /** Pool name → number of partitions. */
  readonly pools: Readonly<Record<string, number>>;
  readonly shards: number;
}

/**
 * Partition of an actor: `<pool>-<FNV-1a-32(type NUL id) mod P>`.
 * @throws RuntimeFault HF-1002 when the manifest does not know the pool
 */
export function partitionOf(scheme: PartitionScheme, pool: string, type: string, id: string): string {
  const count = scheme.pools[pool];
  if (count === undefined) {
    throw new RuntimeFault(
      "HF-1002",
      `Pool "${pool}" is not in the namespace manifest (it has ${Object.keys(scheme.pools).join(", ")}). Start a node that names it, which adds it.`,
    );
  }
  return `${pool}-${fnv1a32(`${type}\0${id}`) % count}`;
}

/** Shard of a partition: its number modulo the number of shards. */
export function shardOf(scheme: PartitionScheme, partition: string): number {
  return Number(partition.slice(partition.lastIndexOf("-") + 1)) % scheme.shards;
}

/** Pool of a partition. */
export const poolOf = (partition: string): string => partition.slice(0, partition.lastIndexOf("-"));

/** Names of all partitions of a pool, in order. */
export function partitionsOf(scheme: PartitionScheme, pool: string): readonly string[] {
  return Array.from({ length: scheme.pools[pool] ?? 0 }, (_, n) => `${pool}-${n}`);
}

/** Names of all partitions of a namespace: pools share its streams. */
export const allPartitionsOf = (scheme: PartitionScheme): readonly string[] =>
  Object.keys(scheme.pools).flatMap((pool) => partitionsOf(scheme, pool));

/** A node that may own a partition, and its share relative to the others. */
export interface WeightedNode {
  readonly name: string;
  /** Above 0. A node of weight 2 gets twice as many partitions as one of weight 1. */
  readonly weight: number;
}

/**
 * Score of a node for a partition: `-weight / ln(u)` with u = (h + 1/2) / 2^32 and h the mixed hash of `<node> NUL <partition>`.
 * The logarithmic method of weighted rendezvous hashing: a change of one node moves partitions only to or from that node.
 */
export function rendezvousScore(partition: string, { name, weight }: WeightedNode): number {
  const uniform = (mix32(fnv1a32(`${name}\0${partition}`)) + 0.5) / 2 ** 32;
  return -weight / Math.log(uniform);
}

/**
 * Node that should own a partition: the highest score among the candidates; ties by name.
 * Idea: rendezvous (highest random weight) hashing, Thaler and Ravishankar 1998.
 */
export function rendezvousOwner(partition: string, candidates: readonly WeightedNode[]): string | undefined {
  let best: string | undefined;
  let bestScore = -1;
  for (const node of candidates) {
    const score = rendezvousScore(partition, node);
    if (score > bestScore || (score === bestScore && best !== undefined && node.name < best)) {
      best = node.name;
      bestScore = score;
    }
  }
  return best;
}

/** Finaliser of MurmurHash3: FNV alone leaves the last characters in the low bits, which spreads partitions unevenly. */
function mix32(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
