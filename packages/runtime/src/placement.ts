import { rendezvousOwner, type Lease } from "@holdfast/protocol";

export interface PlacementInput {
  readonly me: string;
  readonly partitions: readonly string[];
  /** Live nodes that serve (joining ones too), by name → incarnation. Includes this node unless it is leaving. */
  readonly candidates: ReadonlyMap<string, string>;
  readonly leaseOf: (
    partition: string,
  ) => { readonly lease: Lease; readonly idleMs: number; readonly holderAlive: boolean } | undefined;
  readonly wantedBy: (partition: string) => string | undefined;
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
 * Only dead or released leases are claimed; an owner releases only to a node that asked; what nobody claimed for two TTLs anyone may take (F33).
 */
export function planPlacement(input: PlacementInput): PlacementPlan {
  const claim: string[] = [];
  const want: string[] = [];
  const release: string[] = [];
  const unowned: string[] = [];
  const names = [...input.candidates.keys()];
  const mine = input.candidates.get(input.me);
  for (const partition of input.partitions) {
    const winner = rendezvousOwner(partition, names);
    const seen = input.leaseOf(partition);
    if (seen !== undefined && seen.lease.state === "held" && seen.holderAlive) {
      if (seen.lease.holder.startsWith(`${input.me}:`)) {
        const asker = input.wantedBy(partition);
        const winnerAsked = winner !== undefined && winner !== input.me && asker === input.candidates.get(winner);
        if (winnerAsked && release.length < input.movesAtOnce) release.push(partition);
      } else if (winner === input.me && want.length < input.movesAtOnce) want.push(partition);
      continue;
    }
    const patience = seen === undefined ? 0 : 2 * input.ttlMs;
    const overdue = seen !== undefined && seen.idleMs >= patience + input.ttlMs;
    if (mine !== undefined && (winner === input.me || overdue)) claim.push(partition);
    else unowned.push(partition);
  }
  return { claim, want, release, unowned };
}
