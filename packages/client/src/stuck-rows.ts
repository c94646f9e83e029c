import type { StuckEntry } from "@holdfast/protocol";
import { fleetOverview } from "./fleet-overview.ts";
import type { FleetState } from "./namespace-reader.ts";

/** One thing that cannot go on by itself. */
export interface StuckRow {
  readonly key: string;
  /** `parked`, `quarantined`, or what a node says of an actor it owns. */
  readonly kind: string;
  readonly why: string;
  /** Node that said so, last. */
  readonly node: string;
  readonly code?: string;
  /** Only of a single message. */
  readonly messageId?: string;
  readonly attempts?: number;
  /** Broker time since which it is known, Unix ms. */
  readonly firstMs?: number;
  readonly lastMs?: number;
  /** What a person can do, where the one who said it knows. */
  readonly fix?: string;
}

/**
 * What cannot go on by itself: durable entries first, then what live owners say of their actors, and live nodes of partitions. Pure.
 */
export function stuckRows(
  entries: readonly StuckEntry[],
  { nodes, leases, stuck }: Pick<FleetState, "nodes" | "leases" | "stuck">,
): readonly StuckRow[] {
  const nowMs = Math.max(0, ...nodes.map(({ storedAtMs }) => storedAtMs)); // broker time, as of the last heartbeat
  const overview = fleetOverview({ pools: {}, shards: 1 }, { nodes, leases }, nowMs);
  const alive = new Set(
    overview.nodes.flatMap(({ name, state }) => (state === "left" || state === "silent" ? [] : [name])),
  );
  const ownerOf = new Map(
    leases.flatMap(({ partition, holder, state }) => (state === "held" ? [[partition, holder.split(":")[0]]] : [])),
  );
  const known = new Set(entries.flatMap(({ subject, key }) => (subject === "actor" ? [key] : [])));
  const rows: StuckRow[] = entries.map(rowOf);
  const said = new Set<string>(); // of a partition, by whoever came first
  for (const { node, reports } of stuck) {
    for (const { key, kind, why, sinceMs: firstMs, fix } of reports) {
      const [partition = "", type] = key.split(".");
      // What a node said of an actor that is another's by now was true then; of a partition without an owner any node may speak.
      const isTrue = type === undefined ? alive.has(node) : ownerOf.get(partition) === node;
      if (!isTrue || known.has(key) || (type === undefined && said.has(`${key} ${kind} ${why}`))) continue;
      said.add(`${key} ${kind} ${why}`);
      rows.push({ key, kind, why, node, ...(firstMs !== undefined && { firstMs }), ...(fix !== undefined && { fix }) });
    }
  }
  return rows;
}

function rowOf({ key, state, code, reason, history, messageId, attempts, firstMs, lastMs }: StuckEntry): StuckRow {
  return {
    key,
    kind: code === "HF-3106" ? "held" : state,
    why: reason,
    node: history.at(-1)?.node.split(":")[0] ?? "",
    code,
    ...(messageId !== undefined && { messageId }),
    attempts,
    firstMs,
    lastMs,
  };
}
