import { poolOf, rendezvousOwner, type WeightedNode } from "@holdfast/protocol";
import type { StuckReport } from "./partition-set.ts";
import type { Clock, Telemetry } from "./ports/index.ts";

export interface UnownedWatchOptions {
  /** Name of this node. */
  readonly me: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How long a partition may be without an owner before that is an alarm, ms. */
  readonly alarmMs: number;
}

/** A live node and what it serves. */
export interface ServingNode extends WeightedNode {
  readonly pools: readonly string[];
}

/**
 * Since when nobody owns a partition, and the alarm when that lasts.
 *
 * Owns: the times. Does not own: claiming (`planPlacement`).
 *   U1 one live node of the fleet raises the alarm for a partition, of whatever pool: nobody of an empty pool could
 *   U2 a pool without any live node is one alarm, `<pool>-*`, not one per partition
 */
export class UnownedWatch {
  readonly #options: UnownedWatchOptions;
  readonly #since = new Map<string, { readonly atMs: number; readonly isServed: boolean }>();
  #alarms = new Map<string, StuckReport>();

  constructor(options: UnownedWatchOptions) {
    this.#options = options;
  }

  /** ms since this node first saw that nobody owns it, or that its pool has a node at all; 0 while somebody does. */
  unownedMs(partition: string): number {
    const since = this.#since.get(partition)?.atMs;
    return since === undefined ? 0 : this.#options.clock.monotonicMs() - since;
  }

  /** Takes note of who is without an owner now, of all partitions of the namespace. */
  observe(unowned: readonly string[], nodes: readonly ServingNode[]): void {
    const atMs = this.#options.clock.monotonicMs();
    const known = new Set(unowned);
    const served = new Set(nodes.flatMap(({ pools }) => pools));
    for (const partition of this.#since.keys()) if (!known.has(partition)) this.#since.delete(partition);
    for (const partition of unowned) {
      const isServed = served.has(poolOf(partition));
      if (this.#since.get(partition)?.isServed !== isServed) this.#since.set(partition, { atMs, isServed });
    }
    this.#raise(unowned, nodes);
  }

  /** Alarms that are on this node to raise. */
  reports(): readonly StuckReport[] {
    return [...this.#alarms.values()];
  }

  #raise(unowned: readonly string[], nodes: readonly ServingNode[]): void {
    const { me, telemetry, alarmMs } = this.#options;
    const alarms = new Map<string, StuckReport>();
    for (const partition of unowned) {
      if (this.unownedMs(partition) < alarmMs) continue;
      const pool = poolOf(partition);
      const isServed = this.#since.get(partition)?.isServed === true;
      const key = isServed ? partition : `${pool}-*`; // U2
      if (rendezvousOwner(key, nodes) !== me) continue; // U1
      const why = isServed ? "no node claims this partition" : `no live node serves pool ${pool}`;
      alarms.set(key, { key, kind: "unowned", why });
    }
    for (const [key, { why }] of alarms)
      if (!this.#alarms.has(key)) telemetry.error("partition.unowned", { partition: key, reason: why });
    for (const key of this.#alarms.keys()) if (!alarms.has(key)) telemetry.info("partition.owned", { partition: key });
    this.#alarms = alarms;
  }
}
