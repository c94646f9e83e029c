import { shardOf, type Lease } from "@holdfast/protocol";
import type { NodeServices } from "./cell-host.ts";
import type { FleetView } from "./fleet-view.ts";
import type { StuckReport } from "./partition-set.ts";

/** What a stream has lost. */
interface Loss {
  readonly of: "inbox" | "records";
  /** Where it ended once, as a lease says, and where it ends now. */
  readonly had: number;
  readonly has: number;
}

/**
 * Streams that end below what was seen of them: a copy that was restored is older, or a disk has lost what it had acknowledged (F11).
 *
 * Owns: which partitions are refused, and that it is said once. Does not own: new generations (`holdfast renew`).
 *   L1 sequences of such an inbox are given a second time: what records remember to have considered would swallow messages accepted since
 *   L2 records of such a bucket are older than what was decided on them: their actors would decide it again, under the same ids
 *   L3 inbox and bucket are those of a shard, and whoever writes into them hides the loss: one lease that has seen more stops every claim of
 *      the shard
 */
export class LostData {
  readonly #services: NodeServices;
  readonly #view: FleetView;
  readonly #losses = new Map<string, Loss>();

  constructor(services: NodeServices, view: FleetView) {
    this.#services = services;
    this.#view = view;
  }

  /**
   * How far the leases of a shard say that its inbox went, by generation. To be asked before where it ends now: what a lease says is never
   * ahead of what is stored.
   */
  inboxSeen(partition: string): ReadonlyMap<string, number> {
    const seen = new Map<string, number>();
    for (const { generation, highest } of this.#leasesOfShard(partition))
      seen.set(generation, Math.max(seen.get(generation) ?? 0, highest));
    return seen;
  }

  /** L1. @param seen  as `inboxSeen` said before */
  ofInbox(
    partition: string,
    seen: ReadonlyMap<string, number>,
    { generation, lastSeq }: { readonly generation: string; readonly lastSeq: number },
  ): boolean {
    return this.#judge(partition, { of: "inbox", had: seen.get(generation) ?? 0, has: lastSeq });
  }

  /** L2. @param partitions  of one shard, at least one */
  async ofRecords(partitions: readonly string[]): Promise<boolean> {
    const [first = ""] = partitions;
    const { records } = this.#services;
    const had = this.#highestOfShard(first, records.generation(first)); // first: what a lease says is never ahead of what is stored
    const has = await records.lastSeq(first);
    return partitions.map((partition) => this.#judge(partition, { of: "records", had, has })).some((isLost) => isLost);
  }

  reports(): readonly StuckReport[] {
    return [...this.#losses].map(([name, { of, had, has }]) => ({
      key: name.slice(0, name.indexOf(" ")),
      kind: "lost-data",
      why: `HF-4006 the stream of its ${of} ended at ${had} once, and ends at ${has}: nobody serves it`,
      fix: "stop all nodes, restore the newest copy there is, then holdfast renew",
    }));
  }

  #highestOfShard(partition: string, generation: string): number {
    const seen = this.#leasesOfShard(partition).flatMap(({ records }) =>
      records?.generation === generation ? records.highest : [],
    );
    return Math.max(0, ...seen);
  }

  #leasesOfShard(partition: string): readonly Lease[] {
    const { scheme } = this.#services;
    const shard = shardOf(scheme, partition);
    const leases = [...this.#view.leases.values()].map(({ lease }) => lease);
    return leases.filter((lease) => shardOf(scheme, lease.partition) === shard);
  }

  #judge(partition: string, loss: Loss): boolean {
    const { of, had, has } = loss;
    const name = `${partition} ${of}`;
    if (had <= has) {
      this.#losses.delete(name);
      return false;
    }
    if (this.#losses.get(name)?.has !== has)
      this.#services.telemetry.error("broker.lost-data", { partition, of, had, has, code: "HF-4006" });
    this.#losses.set(name, loss);
    return true;
  }
}
