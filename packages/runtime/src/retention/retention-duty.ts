import { toPlainFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { FleetView } from "../fleet-view.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { BlobSweepStore, ErasureOrders, RetentionStore } from "../ports/index.ts";
import { sweepBlobs } from "./sweep-blobs.ts";
import { RetentionRound } from "./retention-round.ts";

export interface RetentionDutyOptions {
  readonly services: NodeServices;
  readonly view: FleetView;
  readonly owners: ReadonlyMap<string, PartitionOwner>;
  readonly store: RetentionStore;
  readonly erasures: ErasureOrders | undefined;
  readonly blobs: BlobSweepStore | undefined;
  /** Every partition of the namespace's pools; the owner of the first one sweeps blobs. */
  readonly partitions: readonly string[];
}

/**
 * What the owner of a partition does beside its work: removes what nobody needs any more, one partition after the other.
 *
 * Owns: whose turn it is. Does not own: the rules (RetentionRound, sweepBlobs).
 */
export class RetentionDuty {
  readonly #options: RetentionDutyOptions;
  /** Partition → where its next look begins. */
  readonly #from = new Map<string, number>();
  #sweepFrom = 1;

  constructor(options: RetentionDutyOptions) {
    this.#options = options;
  }

  /** One look at each partition this node owns. */
  async look(): Promise<void> {
    const { services, owners, store, erasures, view } = this.#options;
    for (const [partition, owner] of owners) {
      const lease = view.leases.get(partition)?.lease;
      if (!owner.isCaughtUp || lease?.epoch !== owner.epoch || lease.generation !== owner.generation) continue;
      try {
        const fromSeq = this.#from.get(partition) ?? 1;
        const round = new RetentionRound({ services, store, erasures, owner, fromSeq, storedCursor: lease.cursor });
        this.#from.set(partition, await round.run());
        const { counts } = round;
        services.telemetry.debug("retention.looked-at", { partition, ...counts });
        if (Object.values(counts).some((count) => count > 0))
          services.telemetry.info("retention.done", { partition, ...counts });
      } catch (error) {
        if (!owner.signal.aborted) this.#failed(partition, error);
      }
    }
  }

  /** Blobs belong to no partition: the owner of the first one sweeps them. */
  async sweep(): Promise<void> {
    const { services, owners, blobs, partitions } = this.#options;
    const first = partitions[0];
    const owner = first === undefined ? undefined : owners.get(first);
    if (first === undefined || blobs === undefined || owner?.isCaughtUp !== true) return;
    try {
      const { nextSeq, ...counts } = await sweepBlobs(services, blobs, owner, this.#sweepFrom);
      this.#sweepFrom = nextSeq;
      services.telemetry.debug("blobs.looked-at", counts);
      if (counts.removed > 0) services.telemetry.info("blobs.swept", counts);
    } catch (error) {
      if (!owner.signal.aborted) this.#failed(first, error);
    }
  }

  #failed(partition: string, error: unknown): void {
    const { code, message: reason } = toPlainFault(error, "HF-4001");
    this.#options.services.telemetry.warn("retention.failed", { partition, code, reason });
  }
}
