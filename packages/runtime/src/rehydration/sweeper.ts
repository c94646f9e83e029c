import { toPlainFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import { inParallel } from "./in-parallel.ts";

/**
 * The net under rehydration: looks at what changed in a partition since the last look, and takes up every record with work that is not
 * in memory here (a former owner's late create or commit, F5). Once a day it begins at the very first record, whatever a checkpoint said.
 * @param fromSeq  sequence of the last barrier seen
 * @returns the sequence to go on from
 */
export async function sweepPartition(services: NodeServices, owner: PartitionOwner, fromSeq: number): Promise<number> {
  const missing = new Set<string>();
  const now = services.clock.monotonicMs();
  const isFull = now - owner.fullScanAtMs >= services.settings.fullScanMs;
  try {
    const barrierSeq = await services.records.scan({
      parts: [{ partition: owner.partition, fromSeq: isFull ? 0 : fromSeq }],
      visit: ({ key, seq, needsWork, waits }) => {
        owner.work.seen(key, seq, needsWork);
        owner.resting.seen(key, seq, waits === true);
        if (needsWork && !owner.isInHand(key, seq)) missing.add(key);
        else missing.delete(key);
      },
      signal: owner.signal,
    });
    owner.work.scanned(barrierSeq);
    owner.swept();
    if (isFull) owner.fullScanAtMs = now;
    await inParallel([...missing], services.settings.rehydrateConcurrency, (key) =>
      services.flow.rehydrating.run(() => owner.rehydrate(key)),
    );
    if (missing.size > 0) services.telemetry.warn("sweep.found", { partition: owner.partition, actors: missing.size });
    await owner.offerDue();
    owner.releaseIdle();
    return barrierSeq;
  } catch (error) {
    if (!owner.signal.aborted) {
      services.telemetry.warn("sweep.failed", {
        partition: owner.partition,
        reason: toPlainFault(error, "HF-4001").message,
      });
    }
    return fromSeq;
  }
}
