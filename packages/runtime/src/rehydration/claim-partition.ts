import type { RecoveryReport } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import { inParallel } from "./in-parallel.ts";

export interface TakenPartition {
  readonly owner: PartitionOwner;
  readonly previousHolder: string | undefined;
  readonly detectMs: number | undefined;
}

/**
 * Takes up the work of a partition whose lease was just claimed.
 * Order: barrier and scan, mailbox from the cursor, actors with work in parallel, then timers and recovered jobs.
 * Cost grows with work in flight, not with sleepers: only records whose needs-work bit is set are read.
 * @returns the recovery report, and the sequence of the barrier for the sweeper
 */
export async function takeUpPartition(
  services: NodeServices,
  taken: TakenPartition,
): Promise<{ readonly report: RecoveryReport; readonly barrierSeq: number }> {
  const { owner } = taken;
  const startedAtMs = services.clock.monotonicMs();
  let scanned = 0;
  const live = new Set<string>();
  const barrierSeq = await services.records.scan(
    owner.partition,
    0,
    (entry) => {
      scanned += 1;
      if (entry.needsWork) live.add(entry.key);
      else live.delete(entry.key);
    },
    owner.signal,
  );
  const readMs = services.clock.monotonicMs() - startedAtMs;
  await services.crashPoints.reach("after-barrier", owner.partition);
  await owner.open();
  for (const key of owner.parkedKeys) live.add(key); // what a former owner could not serve, this one may
  await inParallel([...live], services.settings.rehydrateConcurrency, async (key) => {
    await services.crashPoints.reach("mid-rehydration", key);
    await owner.rehydrate(key);
  });
  await owner.catchUp();
  owner.signal.throwIfAborted(); // fenced or stopped meanwhile: nothing was taken up that anybody should count
  const { counters } = owner;
  const report: RecoveryReport = {
    v: 1,
    partition: owner.partition,
    epoch: owner.epoch,
    incarnation: services.incarnation,
    ...(taken.previousHolder !== undefined && { previousHolder: taken.previousHolder }),
    scanned,
    found: live.size,
    restored: counters.restored,
    resent: counters.resent,
    reissued: counters.reissued,
    adopted: counters.adopted,
    parked: counters.parked,
    quarantined: counters.quarantined,
    held: [...owner.reports].slice(0, 100).map(([key, { why }]) => ({ key, why })),
    ...(taken.detectMs !== undefined && { detectMs: taken.detectMs }),
    readMs,
    durationMs: services.clock.monotonicMs() - startedAtMs,
    atMs: services.time.nowMs(),
  };
  return { report, barrierSeq };
}
