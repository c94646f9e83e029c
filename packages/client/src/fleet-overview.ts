import { partitionsOf, poolOf, type Lease, type Manifest } from "@holdfast/protocol";
import type { FleetState } from "./namespace-reader.ts";

const DEFAULT_TTL_MS = 3000;

/** One node as its last heartbeat and the leases show it. */
export interface NodeOverview {
  readonly name: string;
  readonly incarnation: string;
  /** What it says of itself, or `silent`: its last heartbeat is older than it may be. */
  readonly state: "joining" | "serving" | "draining" | "left" | "silent";
  readonly pools: readonly string[];
  readonly weight: number;
  readonly build: string | undefined;
  readonly formats: readonly number[];
  readonly machines: Readonly<Record<string, string>>;
  /** Partitions it owns. */
  readonly partitions: number;
  readonly actors: number;
  /** Jobs that run in its process. */
  readonly jobs: number;
  /** Jobs it keeps of partitions it gave away. */
  readonly custody: number;
  /** Age of its last heartbeat by the server's clock, ms. */
  readonly silentMs: number;
  /** Revision of the newest stop flag that it has obeyed. */
  readonly stopRevision?: number;
  /** Types of it that are held after an end that nobody acknowledged. */
  readonly heldTypes?: readonly string[];
}

export interface PartitionOverview {
  readonly partition: string;
  /** Name of the live node that owns it; undefined is an alarm. */
  readonly owner: string | undefined;
  /** 0 when nobody has owned it yet. */
  readonly epoch: number;
  readonly cursor: number;
  /** Messages stored since the cursor in the lease, which follows every 5 s. */
  readonly lag: number | undefined;
  /** Messages and outcomes that came too late and changed nothing, ever; like the cursor it follows every 5 s. */
  readonly late: number;
  /** Why nobody owns it. */
  readonly why?: string;
}

export interface FleetOverview {
  readonly nodes: readonly NodeOverview[];
  readonly partitions: readonly PartitionOverview[];
  /** Partitions without a live owner. */
  readonly unowned: readonly string[];
}

/**
 * Who owns what, and what nobody owns. Pure.
 * @param nowMs  the server's time, Unix ms
 * @param lags  partition → messages from its cursor on
 */
export function fleetOverview(
  manifest: Pick<Manifest, "pools" | "shards">,
  fleet: Pick<FleetState, "nodes" | "leases">,
  nowMs: number,
  lags: ReadonlyMap<string, number> = new Map(),
): FleetOverview {
  const nodes = fleet.nodes.map((node): NodeOverview => {
    const silentMs = Math.max(0, nowMs - node.storedAtMs);
    const isSilent = node.state !== "left" && silentMs > 2 * (node.ttlMs ?? DEFAULT_TTL_MS);
    const owned = fleet.leases.filter(({ holder, state }) => holder === node.incarnation && state === "held");
    return {
      name: node.name,
      incarnation: node.incarnation,
      state: isSilent ? "silent" : node.state,
      pools: node.pools,
      weight: node.weight ?? 1,
      build: node.build,
      formats: node.formats,
      machines: node.machines,
      partitions: owned.length,
      actors: node.actors,
      jobs: node.jobs,
      custody: node.custody.length,
      silentMs,
      ...(node.stopRevision !== undefined && { stopRevision: node.stopRevision }),
      ...(node.heldTypes !== undefined && { heldTypes: node.heldTypes }),
    };
  });
  const leases = new Map(fleet.leases.map((lease) => [lease.partition, lease]));
  const all = Object.keys(manifest.pools).flatMap((pool) => partitionsOf(manifest, pool));
  const partitions = all.map((partition): PartitionOverview => {
    const lease = leases.get(partition);
    const owner = ownerOf(lease, nodes);
    return {
      partition,
      owner,
      epoch: lease?.epoch ?? 0,
      cursor: lease?.cursor ?? 1,
      lag: lags.get(partition),
      late: lease?.late ?? 0,
      ...(owner === undefined && { why: whyUnowned(partition, lease, nodes) }),
    };
  });
  const unowned = partitions.filter(({ owner }) => owner === undefined).map(({ partition }) => partition);
  return { nodes, partitions, unowned };
}

const isAlive = ({ state }: NodeOverview): boolean => state !== "left" && state !== "silent";

function ownerOf(lease: Lease | undefined, nodes: readonly NodeOverview[]): string | undefined {
  if (lease === undefined || lease.state !== "held") return undefined;
  return nodes.find((node) => node.incarnation === lease.holder && isAlive(node))?.name;
}

function whyUnowned(partition: string, lease: Lease | undefined, nodes: readonly NodeOverview[]): string {
  const pool = poolOf(partition);
  if (!nodes.some((node) => isAlive(node) && node.pools.includes(pool))) return `no live node serves pool ${pool}`;
  if (lease === undefined) return "no node has owned it yet";
  return lease.state === "released" ? `released by ${lease.holder}` : `its owner ${lease.holder} is gone`;
}
