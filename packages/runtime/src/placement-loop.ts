import { allPartitionsOf, partitionsOf, type PartitionScheme } from "@holdfast/protocol";
import type { LiveNode } from "./eligible-nodes.ts";
import type { FleetView } from "./fleet-view.ts";
import type { PartitionSet } from "./partition-set.ts";
import { planPlacement } from "./placement.ts";
import type { Clock, Telemetry } from "./ports/index.ts";
import type { RuntimeSettings } from "./settings.ts";
import { UnownedWatch } from "./unowned-watch.ts";

export interface PlacementLoopOptions {
  readonly name: string;
  readonly incarnation: string;
  readonly pools: readonly string[];
  readonly scheme: PartitionScheme;
  readonly view: FleetView;
  readonly partitions: PartitionSet;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  /** Whether this node takes partitions, and what it knows of the fleet is fresh. */
  readonly mayPlan: () => boolean;
  readonly abilities: () => Omit<LiveNode, "name" | "incarnation">;
  /** A partition that waits for the successor of a planned restart is nobody's to take yet. */
  readonly isAwaited: (partition: string) => boolean;
}

/**
 * Plans again whenever something changed, and begins what the plan says.
 *
 * Owns: when to plan. Does not own: the plan (`planPlacement`), the moves (`PartitionSet`).
 *   B1 a plan never waits for the moves of an earlier one: a partition that is released while others are being taken up is claimed at once
 */
export class PlacementLoop {
  readonly unowned: UnownedWatch;
  readonly #options: PlacementLoopOptions;
  #isDue = false;

  constructor(options: PlacementLoopOptions) {
    const { name, clock, telemetry, settings } = options;
    this.#options = options;
    this.unowned = new UnownedWatch({ me: name, clock, telemetry, alarmMs: 4 * settings.leaseTtlMs });
  }

  /** Plans soon: changes that come together are planned for together. */
  plan(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (this.#options.mayPlan()) this.#planNow();
    });
  }

  #planNow(): void {
    const { name, pools, scheme, view, partitions, settings, isAwaited } = this.#options;
    const nodes = this.#nodes();
    const all = allPartitionsOf(scheme);
    const isOwned = (partition: string): boolean => {
      const lease = view.leases.get(partition)?.lease;
      return lease?.state === "held" && this.#isHolderAlive(lease.holder, partition);
    };
    this.unowned.observe(
      all.filter((partition) => !isOwned(partition)),
      nodes,
    );
    const plan = planPlacement({
      me: name,
      partitions: pools.flatMap((pool) => partitionsOf(scheme, pool)).filter((each) => !isAwaited(each)),
      nodes,
      leaseOf: (partition) => {
        const seen = view.leases.get(partition);
        return seen === undefined ? undefined : { lease: seen.lease, holderAlive: isOwned(partition) };
      },
      unownedMs: (partition) => this.unowned.unownedMs(partition),
      wantedBy: (partition) => view.wants.get(partition)?.incarnation,
      moving: partitions.moving,
      ttlMs: settings.leaseTtlMs,
      movesAtOnce: settings.movesAtOnce,
    });
    partitions.begin(plan);
  }

  /** Live nodes that take partitions, this one among them. */
  #nodes(): readonly LiveNode[] {
    const { name, incarnation, view, abilities } = this.#options;
    const nodes: LiveNode[] = [];
    for (const { heartbeat } of view.liveNodes()) {
      const takesPart = heartbeat.state === "serving" || heartbeat.state === "joining";
      if (takesPart && heartbeat.name !== name) nodes.push({ ...heartbeat, weight: heartbeat.weight ?? 1 });
    }
    return [...nodes, { ...abilities(), name, incarnation }];
  }

  /** Our own lease counts as held only while we serve it: one that a failed takeover left behind is claimed again. */
  #isHolderAlive(holder: string, partition: string): boolean {
    const { incarnation, partitions, view } = this.#options;
    return holder === incarnation ? partitions.owners.has(partition) : view.isIncarnationAlive(holder);
  }
}
