import { RuntimeFault, shardOf, toPlainFault, type Lease } from "@holdfast/protocol";
import type { NodeServices } from "./cell-host.ts";
import { CRASHES_UNTIL_TRIAL } from "./crash-loop/partition-trial.ts";
import type { FleetView } from "./fleet-view.ts";
import type { ClaimNotes, LeaseKeeper } from "./lease-keeper.ts";
import { LostData } from "./lost-data.ts";
import { CutOffWork } from "./holds/cut-off-work.ts";
import { PartitionOwner } from "./partition-owner.ts";
import type { PlacementPlan } from "./placement.ts";
import type { FleetRegistry } from "./ports/index.ts";
import { takeUpPartition, type TakenPartition } from "./rehydration/claim-partition.ts";
import { findWork, type FoundWork } from "./rehydration/find-work.ts";
import { inParallel } from "./rehydration/in-parallel.ts";
import { writeCheckpoint } from "./rehydration/partition-checkpoint.ts";
import { sweepPartition } from "./rehydration/sweeper.ts";
import type { RestartBook } from "./restarts/restart-book.ts";
import type { StopFlag } from "./stop-flags/stop-flag.ts";

export interface PartitionSetOptions {
  readonly services: NodeServices;
  readonly fleet: FleetRegistry;
  readonly leases: LeaseKeeper;
  readonly view: FleetView;
  readonly stopFlag: StopFlag;
  readonly restarts: RestartBook;
  /** Stores a heartbeat that names the jobs this process keeps of partitions it no longer owns. */
  readonly announce: () => Promise<boolean>;
  /** A partition was taken up or given away: there may be room for the next one. */
  readonly moved: () => void;
  /** After the claim of a partition, before anything of it is loaded. */
  readonly beforeTakeUp: (partition: string) => Promise<void>;
}

export interface StuckReport {
  readonly key: string;
  readonly kind: string;
  readonly why: string;
  /** Broker time since which it is so; absent where nobody took note. */
  readonly sinceMs?: number;
  /** What a person can do. */
  readonly fix?: string;
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/**
 * The partitions this node owns, and how they come and go.
 *
 * Owns: partition owners by name. Does not own: the plan.
 */
export class PartitionSet {
  readonly owners = new Map<string, PartitionOwner>();
  readonly #options: PartitionSetOptions;
  readonly #barriers = new Map<string, number>();
  /** Being taken up or given away right now. */
  readonly moving = new Set<string>();
  readonly #moves = new Set<Promise<void>>();
  readonly #asking = new Set<string>();
  readonly #lost: LostData;

  constructor(options: PartitionSetOptions) {
    this.#options = options;
    this.#lost = new LostData(options.services, options.view);
  }

  /** Begins what a plan says; what fails, or does not come in time, is planned again. Partitions of a shard are claimed together. */
  begin(plan: PlacementPlan): void {
    for (const partition of plan.release) this.#begin([partition], () => this.release(partition));
    const byShard = Map.groupBy(plan.claim, (partition) => shardOf(this.#options.services.scheme, partition));
    for (const group of byShard.values()) this.#begin(group, () => this.#claimShard(group));
    for (const partition of plan.want) void this.#ask(partition);
  }

  /** Resolves when nothing is on the move that was when it was called. */
  async settled(): Promise<void> {
    await Promise.all(this.#moves);
  }

  /** A lease was written by somebody. */
  leaseSeen(partition: string, lease: Lease): void {
    const owner = this.owners.get(partition);
    if (owner !== undefined && lease.epoch > owner.epoch) this.#fence(partition, lease.epoch);
  }

  recheck(): void {
    for (const owner of this.owners.values()) void owner.recheck();
  }

  reports(): readonly StuckReport[] {
    const reports: StuckReport[] = [];
    for (const owner of this.owners.values()) {
      for (const [key, { kind, why }] of owner.reports) if (reports.length < 200) reports.push({ key, kind, why });
    }
    return [...this.#lost.reports(), ...reports];
  }

  async sweep(): Promise<void> {
    for (const [partition, owner] of this.owners) {
      if (!owner.isCaughtUp) continue;
      const from = this.#barriers.get(partition) ?? 0;
      this.#barriers.set(partition, await sweepPartition(this.#options.services, owner, from));
      await writeCheckpoint(this.#options.services, owner);
      await owner.advanceCursor();
    }
  }

  async flushCursors(): Promise<void> {
    for (const [partition, owner] of this.owners) {
      if (!owner.isCaughtUp) continue;
      await this.#options.leases.advance(partition, owner.progress, owner.isHarmless());
    }
  }

  /** Ends everything here without a word to the others: this incarnation was replaced. */
  abandon(): void {
    for (const [partition, { epoch }] of this.owners) this.#fence(partition, epoch + 1);
  }

  /** Gives a partition away. Running jobs stay with this process; the heartbeat that names them is stored first. */
  async release(partition: string, announce: () => Promise<boolean> = this.#options.announce): Promise<void> {
    const owner = this.owners.get(partition);
    if (owner === undefined || this.moving.has(partition)) return;
    this.moving.add(partition);
    try {
      await owner.stop();
      this.owners.delete(partition);
      await Promise.all([this.#keepsJobs() ? announce() : undefined, writeCheckpoint(this.#options.services, owner)]);
      await this.#options.services.crashPoints.reach("before-release", partition);
      await this.#options.leases.release(partition, owner.progress, this.#options.restarts.noteFor(partition));
      this.#options.services.telemetry.info("partition.released", {
        partition,
        epoch: owner.epoch,
        cursor: owner.cursor.next,
      });
    } finally {
      this.moving.delete(partition);
    }
  }

  /** Whether a job runs here of a partition that is no longer ours: the heartbeat has to name it before its lease is released (F22). */
  #keepsJobs(): boolean {
    return this.#options.services.jobs.keysOutside(new Set(this.owners.keys())).length > 0;
  }

  async releaseAll(announce?: () => Promise<boolean>): Promise<void> {
    await inParallel([...this.owners.keys()], 32, (partition) => this.release(partition, announce));
  }

  /** The fleet is stopped: nothing here takes another message or starts anything from this moment on, and nobody owns it when this resolves. */
  async giveUpAll(): Promise<void> {
    for (const owner of this.owners.values()) void owner.stop();
    await this.settled();
    await this.releaseAll(() => Promise.resolve(true));
  }

  /** What failed is planned again at the next heartbeat, not at once. */
  #begin(partitions: readonly string[], work: () => Promise<void>): void {
    const { telemetry } = this.#options.services;
    const ours = (): number => partitions.filter((partition) => this.owners.has(partition)).length;
    const before = ours();
    const move = work()
      .catch((error: unknown) =>
        telemetry.warn("placement.failed", { partitions, reason: toPlainFault(error, "HF-4001").message }),
      )
      .finally(() => {
        this.#moves.delete(move);
        if (ours() !== before) this.#options.moved();
      });
    this.#moves.add(move);
  }

  /** One reader finds the work of all partitions of a shard. */
  async #claimShard(partitions: readonly string[]): Promise<void> {
    if (await this.#lost.ofRecords(partitions)) return;
    const claims = await Promise.all(partitions.map((partition) => this.#claim(partition)));
    const taken = claims.filter((claim) => claim !== undefined);
    if (taken.length === 0) return;
    const finding = findWork(
      this.#options.services,
      taken.map(({ owner }) => owner),
    );
    await Promise.all(taken.map((each) => this.#takeUp(each, finding)));
  }

  /** @returns undefined when it is not ours now */
  async #claim(partition: string): Promise<TakenPartition | undefined> {
    if (this.owners.has(partition) || this.moving.has(partition)) return undefined;
    const { services, leases, view, stopFlag } = this.#options;
    this.moving.add(partition);
    try {
      const startedAtMs = services.clock.monotonicMs();
      const seen = view.leases.get(partition);
      const silentSinceMs = this.#silentSince(seen?.lease.holder);
      const inboxSeen = this.#lost.inboxSeen(partition);
      const position = await services.log.position(partition);
      const isLost = this.#lost.ofInbox(partition, inboxSeen, position);
      const held = isLost ? undefined : await leases.claim(partition, seen, position, this.#notes());
      if (held === undefined) {
        this.moving.delete(partition);
        return undefined;
      }
      const claimMs = services.clock.monotonicMs() - startedAtMs;
      await services.crashPoints.reach("after-lease-claim", partition);
      services.time.raiseTo(held.lease.floorMs);
      const isSuspect = (held.lease.crashes ?? 0) >= CRASHES_UNTIL_TRIAL;
      if (isSuspect) await this.#blame(partition, seen?.lease);
      const owner = new PartitionOwner({
        partition,
        epoch: held.lease.epoch,
        generation: position.generation,
        lineage: position.lineage,
        from: held.lease.cursor,
        lateBefore: held.lease.late ?? 0,
        isSuspect,
        services,
        cutOff: held.lease.stop?.isSettled === false ? this.#cutOffBy(partition) : undefined,
        mayStartEffects: () => leases.isFresh && !stopFlag.isRaised,
        isRunElsewhere: (jobKey) => view.inCustody(jobKey, services.incarnation),
        fenced: (epoch) => this.#fence(partition, epoch),
        deaf: () => void this.#giveUpDeaf(partition),
        listNeeds: (needs) => leases.listNeeds(partition, needs),
      });
      this.owners.set(partition, owner);
      await this.#assertGoing(partition, held.lease);
      await this.#options.beforeTakeUp(partition);
      const detectMs = silentSinceMs === undefined ? undefined : startedAtMs - silentSinceMs;
      return {
        owner,
        hold: await this.#options.restarts.holdFor(held.lease),
        settleEnd: () => leases.settleEnd(partition),
        previousHolder: seen?.lease.holder,
        detectMs,
        claimMs,
      };
    } catch (error) {
      await this.#giveUp(partition, error);
      this.moving.delete(partition);
      return undefined;
    }
  }

  /** F34: a flag that was stored before the claim is seen by now. Work of the partition that it cut off is set aside by whoever claims it next. */
  async #assertGoing(partition: string, { stop }: Lease): Promise<void> {
    const { isRaised, revision } = await this.#options.stopFlag.read();
    if (!isRaised && revision === (stop?.revision ?? 0)) return;
    throw new RuntimeFault(
      "HF-3021",
      `Partition ${partition}: the fleet was stopped while it was claimed. It is given back.`,
    );
  }

  #notes(): ClaimNotes {
    const types = [...this.#options.services.types.values()];
    const notesCrashes = types.some(({ definition }) => definition.afterCrash === "hold");
    return { stopRevision: this.#options.stopFlag.state.revision, notesCrashes };
  }

  #cutOffBy(partition: string): CutOffWork {
    const { by, reason } = this.#options.stopFlag.state;
    return new CutOffWork({
      why: `cut off when ${by} stopped the fleet: ${reason}`,
      settled: () => void this.#options.leases.settleStop(partition).catch(() => undefined), // with the next claim it is set aside again
    });
  }

  /** What the former owner was trying when it died has taken a node down once more. */
  async #blame(partition: string, former: Lease | undefined): Promise<void> {
    const { evidence, incarnation } = this.#options.services;
    if (former === undefined || former.state !== "held" || former.holder === incarnation) return;
    if (await evidence.blame(partition, former.holder)) return;
    throw new RuntimeFault(
      "HF-4008",
      `Partition ${partition}: what its former owner died of could not be stored. It is claimed again.`,
    );
  }

  async #takeUp(taken: TakenPartition, finding: Promise<ReadonlyMap<PartitionOwner, FoundWork>>): Promise<void> {
    const { services, fleet } = this.#options;
    const { owner } = taken;
    const { partition } = owner;
    try {
      const found = (await finding).get(owner);
      if (found === undefined) return;
      const report = await takeUpPartition(services, taken, found);
      this.#barriers.set(partition, found.barrierSeq);
      services.telemetry.info("partition.taken", { ...report });
      await fleet.put(`report.${partition}`, encode(report));
    } catch (error) {
      await this.#giveUp(partition, error);
    } finally {
      this.moving.delete(partition);
    }
    await this.#giveUpDeaf(partition);
  }

  /** Nobody may own a partition whose messages it does not get: it is released, and claimed again here or elsewhere, from its cursor. */
  async #giveUpDeaf(partition: string): Promise<void> {
    const owner = this.owners.get(partition);
    if (owner?.deafness === undefined || owner.signal.aborted || this.moving.has(partition)) return;
    const { telemetry } = this.#options.services;
    const { code, message } = toPlainFault(owner.deafness, "HF-4001");
    telemetry.error("partition.reader-ended", { partition, epoch: owner.epoch, code, reason: message });
    try {
      await this.release(partition);
    } catch (error) {
      // Stopped it is; a lease of ours that we do not serve is claimed again.
      telemetry.warn("partition.release-failed", { partition, reason: toPlainFault(error, "HF-4001").message });
    }
  }

  #silentSince(incarnation: string | undefined): number | undefined {
    if (incarnation === undefined) return undefined;
    const node = this.#options.view.nodes.get(incarnation.slice(0, incarnation.lastIndexOf(":")));
    return node?.heartbeat.incarnation === incarnation ? node.movedAtMs : undefined;
  }

  /** A takeover that failed half-way is undone, so that it is tried again, here or elsewhere. */
  async #giveUp(partition: string, error: unknown): Promise<void> {
    const { services, leases } = this.#options;
    const owner = this.owners.get(partition);
    if (owner?.signal.aborted !== true) {
      services.telemetry.error("partition.take-failed", { partition, reason: toPlainFault(error, "HF-4001").message });
    }
    if (owner === undefined) return;
    await owner.stop();
    this.owners.delete(partition);
    await leases.release(partition, owner.progress);
  }

  #fence(partition: string, epoch: number): void {
    const { services, leases } = this.#options;
    const owner = this.owners.get(partition);
    if (owner === undefined) return;
    services.telemetry.warn("partition.fenced", { partition, epoch: owner.epoch, seen: epoch });
    this.owners.delete(partition);
    leases.forget(partition);
    services.jobs.stopPartition(partition, "another node owns the actor");
    void owner.stop();
  }

  async #ask(partition: string): Promise<void> {
    const { fleet, services, view } = this.#options;
    if (view.wants.get(partition)?.incarnation === services.incarnation || this.#asking.has(partition)) return;
    this.#asking.add(partition);
    await fleet
      .put(`want.${partition}`, encode({ v: 1, partition, incarnation: services.incarnation }))
      .catch(() => undefined); // asked again with the next plan
    this.#asking.delete(partition);
  }
}
