import type { RecoveryReport } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { FoundWork } from "./find-work.ts";
import { holdAfterEnd, type HoldOrder } from "../holds/hold-after-end.ts";
import { inParallel } from "./in-parallel.ts";
import { writeCheckpoint } from "./partition-checkpoint.ts";

export interface TakenPartition {
  readonly owner: PartitionOwner;
  readonly previousHolder: string | undefined;
  readonly detectMs: number | undefined;
  readonly claimMs: number;
  /** Who is to be set aside for how the former owner ended; undefined for nobody. */
  readonly hold: HoldOrder | undefined;
  /** They were. */
  readonly settleEnd: () => Promise<boolean>;
}

/**
 * Takes up the work of a partition whose lease was just claimed, once it was found.
 * Order: mailbox from the cursor, actors with work in parallel, then timers and recovered jobs.
 * Cost grows with work in flight, not with sleepers: only records whose needs-work bit is set are read.
 * @returns the recovery report
 */
export async function takeUpPartition(
  services: NodeServices,
  taken: TakenPartition,
  found: FoundWork,
): Promise<RecoveryReport> {
  const { owner } = taken;
  const { clock } = services;
  const foundAtMs = clock.monotonicMs();
  await services.crashPoints.reach("after-barrier", owner.partition);
  if (taken.hold !== undefined) await holdAfterEnd(services, found.live.keys(), taken.hold);
  await taken.settleEnd(); // if it fails, the next owner sets them aside again
  owner.cutOff?.list(found.live.keys());
  await owner.open();
  const live = new Map(found.live);
  for (const key of owner.parkedKeys) if (!live.has(key)) live.set(key, undefined); // what a former owner could not serve, this one may
  await inParallel([...live], services.settings.rehydrateConcurrency, async ([key, stored]) => {
    const reached = services.crashPoints.reach("mid-rehydration", key);
    if (reached !== undefined) await reached;
    const rehydrate = (): Promise<void> => owner.rehydrate(key, stored);
    // One by one in any case: a trial must not keep the places of others.
    await (owner.trial === undefined ? services.flow.rehydrating.run(rehydrate) : rehydrate());
  });
  const restoredAtMs = clock.monotonicMs();
  await owner.catchUp();
  owner.signal.throwIfAborted(); // fenced or stopped meanwhile: nothing was taken up that anybody should count
  owner.cutOff?.keepOnly((key) => owner.cells.get(key)?.hasCopy === true);
  const caughtUpAtMs = clock.monotonicMs();
  const { counters } = owner;
  const report: RecoveryReport = {
    v: 1,
    partition: owner.partition,
    epoch: owner.epoch,
    incarnation: services.incarnation,
    ...(taken.previousHolder !== undefined && { previousHolder: taken.previousHolder }),
    scanned: found.scanned,
    found: live.size,
    restored: counters.restored,
    resent: counters.resent,
    reissued: counters.reissued,
    adopted: counters.adopted,
    parked: counters.parked,
    quarantined: counters.quarantined,
    held: [...owner.reports].slice(0, 100).map(([key, { why }]) => ({ key, why })),
    ...(taken.detectMs !== undefined && { detectMs: taken.detectMs }),
    claimMs: taken.claimMs,
    readMs: found.readMs,
    fromSeq: found.fromSeq,
    restoreMs: restoredAtMs - foundAtMs,
    catchUpMs: caughtUpAtMs - restoredAtMs,
    durationMs: found.readMs + caughtUpAtMs - foundAtMs,
    atMs: services.time.nowMs(),
  };
  await writeCheckpoint(services, owner); // a successor finds one of the epoch before its own
  return report;
}
