import { rendezvousOwner, type Lease } from "@holdfast/protocol";
import { eligibleNodes, type LiveNode } from "./eligible-nodes.ts";

export interface PlacementInput {
  /** Name of this node. */
  readonly me: string;
  /** Partitions of the pools this node serves. */
  readonly partitions: readonly string[];
  /** Live nodes that take partitions. Includes this node unless it is leaving. */
  readonly nodes: readonly LiveNode[];
  readonly leaseOf: (partition: string) => { readonly lease: Lease; readonly holderAlive: boolean } | undefined;
  /** For how long nobody has owned it, as far as this node saw. ms */
  readonly unownedMs: (partition: string) => number;
  readonly wantedBy: (partition: string) => string | undefined;
  /** Partitions that this node is taking up or giving away right now. */
  readonly moving: ReadonlySet<string>;
  readonly ttlMs: number;
  readonly movesAtOnce: number;
}

export interface PlacementPlan {
  readonly claim: readonly string[];
  /** Ask their live owners for these. */
  readonly want: readonly string[];
  readonly release: readonly string[];
  /** Nobody owns these and it is not on us to take them yet. */
  readonly unowned: readonly string[];
}

/**
 * What this node does about partitions now.
 * Only dead or released leases are claimed; an owner releases only to a node that asked; what nobody claimed for three TTLs anyone may take (F33).
 * Planned moves wait while `movesAtOnce` partitions are on the move here; what nobody owns does not.
 */
export function planPlacement(input: PlacementInput): PlacementPlan {
  const { me, moving, movesAtOnce, wantedBy } = input;
  const claim: string[] = [];
  const mayWant: string[] = [];
  const mayRelease: string[] = [];
  const unowned: string[] = [];
  const mine = input.nodes.find(({ name }) => name === me)?.incarnation;
  for (const partition of input.partitions) {
    if (moving.has(partition)) continue;
    const seen = input.leaseOf(partition);
    const eligible = eligibleNodes(partition, seen?.lease.needs, input.nodes);
    const winner = rendezvousOwner(partition, eligible);
    if (seen !== undefined && seen.lease.state === "held" && seen.holderAlive) {
      if (seen.lease.holder.startsWith(`${me}:`)) {
        const incarnation = eligible.find(({ name }) => name === winner)?.incarnation;
        const winnerAsked = winner !== me && incarnation !== undefined && wantedBy(partition) === incarnation;
        if (winnerAsked) mayRelease.push(partition);
      } else if (winner === me) mayWant.push(partition);
      continue;
    }
    const isMine = winner === me || input.unownedMs(partition) >= 3 * input.ttlMs;
    if (isMine && eligible.some(({ name }) => name === me)) claim.push(partition);
    else unowned.push(partition);
  }
  const room = Math.max(0, movesAtOnce - moving.size - claim.length);
  const asked = mayWant.filter((partition) => wantedBy(partition) === mine);
  const want = [...new Set([...asked, ...mayWant])].slice(0, room);
  return { claim, want, release: mayRelease.slice(0, room), unowned };
}
