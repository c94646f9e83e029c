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
      `Pool "${pool}" is not in the namespace manifest (it has ${Object.keys(scheme.pools).join(", ")}). Create the namespace with this pool.`,
    );
  }
  return `${pool}-${fnv1a32(`${type}\0${id}`) % count}`;
}

/** Shard of a partition: its number modulo the number of shards. */
export function shardOf(scheme: PartitionScheme, partition: string): number {
  return Number(partition.slice(partition.lastIndexOf("-") + 1)) % scheme.shards;
}

/** Names of all partitions of a pool, in order. */
export function partitionsOf(scheme: PartitionScheme, pool: string): readonly string[] {
  return Array.from({ length: scheme.pools[pool] ?? 0 }, (_, n) => `${pool}-${n}`);
}

/**
 * Node that should own a partition: highest FNV-1a of (node, partition) among the candidates; ties by name.
 * Idea: rendezvous (highest random weight) hashing, Thaler and Ravishankar 1998.
 */
export function rendezvousOwner(partition: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestWeight = -1;
  for (const node of candidates) {
    const weight = mix32(fnv1a32(`${node}\0${partition}`));
    if (weight > bestWeight || (weight === bestWeight && best !== undefined && node < best)) {
      best = node;
      bestWeight = weight;
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
