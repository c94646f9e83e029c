import { allPartitionsOf, toPlainFault } from "@holdfast/protocol";
import { PayloadStore } from "./blobs/payload-store.ts";
import { readDrainRequest, replacedFault, type NodeEnding } from "./node-ending.ts";
import { BrokerTime } from "./broker-time.ts";
import type { NodeServices } from "./cell-host.ts";
import { describeNode } from "./describe-node.ts";
import { FleetView } from "./fleet-view.ts";
import { createFlowControl, type FlowControl } from "./flow-control.ts";
import { publishOutcome } from "./job-outcome.ts";
import { InboxTrimmer } from "./inbox-trimmer.ts";
import { JobTable } from "./job-table.ts";
import { LoadReporter } from "./load-reporter.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Linger } from "./linger.ts";
import { Membership } from "./membership.ts";
import type { PartitionOwner } from "./partition-owner.ts";
import { PartitionSet } from "./partition-set.ts";
import { PlacementLoop } from "./placement-loop.ts";
import type { FleetValue } from "./ports/index.ts";
import { OperatorCommands } from "./quarantine/operator-commands.ts";
import { Quarantine } from "./quarantine/quarantine.ts";
import { repeatEvery } from "./repeated-work.ts";
import { StuckTeller } from "./stuck-teller.ts";
import { compileTypes, reportLint } from "./served-types.ts";
import { RetentionDuty } from "./retention/retention-duty.ts";
import type { RuntimeNodeOptions } from "./runtime-node-options.ts";
import { resolveSettings, type RuntimeSettings } from "./settings.ts";
import { WriteSwitch } from "./write-switch.ts";

/**
 * One agent node: a heartbeat, the partitions it owns, and their actors.
 *
 * Owns: the loops. Does not own: connections (they are handed in and closed by the caller).
 *   N1 claim, then act: nothing of a partition starts before its lease is ours
 *   N2 a greater epoch ends our part of a partition at once, its jobs included
 *   N3 a planned leave moves ownership at once and keeps custody of running jobs until they settle or the grace time ends (F22)
 */
export class RuntimeNode {
  readonly name: string;
  readonly incarnation: string;
  readonly view: FleetView;
  readonly settings: RuntimeSettings;
  readonly #options: RuntimeNodeOptions;
  readonly #services: NodeServices;
  readonly #leases: LeaseKeeper;
  readonly #membership: Membership;
  readonly #partitions: PartitionSet;
  readonly #placement: PlacementLoop;
  readonly #commands: OperatorCommands;
  readonly #teller: StuckTeller;
  readonly #startedAtMs: number;
  readonly #stopping = new AbortController();
  readonly #ending = Promise.withResolvers<NodeEnding>();
  #draining: Promise<void> | undefined;
  readonly #cancelLoops: (() => void)[] = [];
  #watch: { stop(): Promise<void> } | undefined;

  constructor(options: RuntimeNodeOptions) {
    const { clock, random, telemetry, ports } = options;
    this.#options = options;
    this.name = options.name;
    this.incarnation = `${options.name}:${random.hex(8)}`;
    this.settings = resolveSettings(options.settings ?? {});
    this.#startedAtMs = clock.wallMs();
    const time = new BrokerTime(clock);
    this.view = new FleetView({ clock, telemetry, ttlMs: this.settings.leaseTtlMs });
    this.#leases = new LeaseKeeper({
      incarnation: this.incarnation,
      fleet: ports.fleet,
      clock,
      random,
      time,
      ttlMs: this.settings.leaseTtlMs,
    });
    const flow = createFlowControl(this.settings, clock);
    const jobs = new JobTable({
      node: this.name,
      limits: flow.jobs,
      publish: (job, outcome) => publishOutcome(this.#services, job, outcome, this.#stopping.signal),
      reach: (point, key) => options.crashPoints.reach(point, key),
      held: (bytes) => flow.memory.hold("jobs", bytes),
      monotonicMs: () => clock.monotonicMs(),
    });
    this.#services = {
      node: this.name,
      incarnation: this.incarnation,
      scheme: options.scheme,
      types: compileTypes(options.definitions, options.homes),
      codec: options.codec,
      records: ports.records,
      log: ports.log,
      journal: ports.journal,
      payloads: new PayloadStore({ codec: options.codec, blobs: ports.blobs, clock }),
      clock,
      random,
      time,
      jobs,
      writeSwitch: new WriteSwitch(this.view, this.name),
      quarantine: new Quarantine({ bucket: ports.stuck, incarnation: this.incarnation, time, telemetry }),
      crashPoints: options.crashPoints,
      telemetry,
      settings: this.settings,
      journalLinger: new Linger(clock, this.settings.journalLingerMs),
      flow,
    };
    this.#partitions = new PartitionSet({
      services: this.#services,
      fleet: ports.fleet,
      leases: this.#leases,
      view: this.view,
      announce: () => this.#membership.beat(),
      beforeTakeUp: (partition) => this.#commands.beforeTakeUp(partition),
      moved: () => this.#plan(),
    });
    this.#placement = new PlacementLoop({
      name: this.name,
      incarnation: this.incarnation,
      pools: options.pools,
      scheme: options.scheme,
      view: this.view,
      partitions: this.#partitions,
      clock,
      telemetry,
      settings: this.settings,
      // What we know of the fleet is as old as our last heartbeat.
      mayPlan: () => this.#membership.state === "serving" && !this.#stopping.signal.aborted && this.#leases.isFresh,
      abilities: () => ({ ...this.#describe(), weight: options.weight ?? 1 }),
    });
    const { owners } = this.#partitions;
    this.#commands = new OperatorCommands({ services: this.#services, bucket: ports.stuck, owners });
    this.#teller = new StuckTeller(ports.fleet, this.name);
    this.#membership = new Membership({
      name: this.name,
      incarnation: this.incarnation,
      fleet: ports.fleet,
      clock,
      time,
      view: this.view,
      leases: this.#leases,
      ttlMs: this.settings.leaseTtlMs,
      heartbeatMs: this.settings.heartbeatMs,
      replaced: () => this.#wasReplaced(),
      describe: () => this.#describe(),
    });
  }

  /** Resolves when this node ends, or begins to, without its process having asked for it: the process should follow. */
  get ending(): Promise<NodeEnding> {
    return this.#ending.promise;
  }

  get partitions(): ReadonlyMap<string, PartitionOwner> {
    return this.#partitions.owners;
  }

  get jobs(): JobTable {
    return this.#services.jobs;
  }

  /** What bounds the work of this node, and how much of it is used. */
  get flow(): FlowControl {
    return this.#services.flow;
  }

  /** Joins the fleet. Resolves once the first heartbeat is stored; partitions follow. @throws RuntimeFault HF-3004 */
  async start(): Promise<void> {
    await this.#membership.claimName(this.#stopping.signal);
    await this.#commands.start(); // before anything may be claimed
    this.#watch = await this.#options.ports.fleet.watch((value) => this.#seen(value));
    this.#membership.state = "serving";
    while (!(await this.#membership.beat()) && !this.#stopping.signal.aborted)
      await this.#wait(this.settings.heartbeatMs);
    this.#options.telemetry.info("node.joined", {
      node: this.name,
      incarnation: this.incarnation,
      types: [...this.#services.types.keys()],
    });
    this.#every(this.settings.heartbeatMs, () => this.#tick());
    this.#every(this.settings.heartbeatMs, () =>
      this.#teller.tell([...this.#placement.unowned.reports(), ...this.#partitions.reports()]),
    );
    const load = this.#loadReporter();
    this.#every(this.settings.heartbeatMs, () => load.report());
    this.#every(this.settings.sweepMs, () => this.#partitions.sweep());
    const { clock, ports, scheme, telemetry } = this.#options;
    const trimmer = new InboxTrimmer({
      scheme,
      view: this.view,
      log: ports.log,
      clock,
    });
    this.#every(this.settings.cursorFlushMs, async () => {
      await this.#partitions.flushCursors();
      await trimmer.trim(new Set(this.#partitions.owners.keys()));
    });
    this.#retain();
    reportLint(this.#services.types, telemetry);
    this.#plan();
  }

  /** What nobody needs any more goes, beside everything else. */
  #retain(): void {
    const { retention: store, blobSweep: blobs } = this.#options.ports;
    if (store === undefined || blobs === undefined) return;
    const { owners } = this.#partitions;
    const partitions = allPartitionsOf(this.#options.scheme);
    const duty = new RetentionDuty({ services: this.#services, view: this.view, owners, store, blobs, partitions });
    this.#every(this.settings.retentionMs, () => duty.look());
    this.#every(this.settings.blobSweepMs, () => duty.sweep());
  }

  /** Leaves as planned (N3). Resolves when everything moved and jobs have settled, or the grace time is over. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  async #drain(): Promise<void> {
    const { telemetry, clock } = this.#options;
    if (this.#membership.state === "left") return;
    this.#membership.state = "draining";
    telemetry.info("node.draining", {
      node: this.name,
      partitions: this.#partitions.owners.size,
      jobs: this.jobs.size,
    });
    await this.#membership.beat();
    await this.#endOfPlanning();
    await this.#partitions.releaseAll();
    const deadlineMs = clock.monotonicMs() + this.settings.drainGraceMs;
    while (this.jobs.size > 0 && clock.monotonicMs() < deadlineMs && !this.#stopping.signal.aborted)
      await this.#wait(50);
    await this.stop();
  }

  /** Leaves now: running jobs are given up, their partitions released. */
  async stop(): Promise<void> {
    if (this.#membership.state === "left") return;
    this.#membership.state = "draining"; // what is released now must not be claimed again
    for (const cancel of this.#cancelLoops) cancel();
    for (const key of this.jobs.keys()) this.jobs.stop(key, "the node stops");
    await this.#endOfPlanning();
    await this.#partitions.releaseAll(() => Promise.resolve(true));
    this.#membership.state = "left";
    await this.#membership.beat();
    this.#stopping.abort();
    await this.#watch?.stop();
    await this.#commands.stop();
    this.#options.telemetry.info("node.left", { node: this.name });
  }

  /** Another incarnation lives under our name (F14): nothing here is ours any more. */
  #wasReplaced(): void {
    const { telemetry } = this.#options;
    telemetry.error("node.replaced", { node: this.name, incarnation: this.incarnation, code: "HF-3004" });
    this.#ending.resolve({ kind: "replaced", fault: replacedFault(this.name) });
    for (const cancel of this.#cancelLoops) cancel();
    for (const key of this.jobs.keys()) this.jobs.stop(key, "another node has this name");
    this.#partitions.abandon();
    this.#stopping.abort();
    void this.#watch?.stop();
    void this.#commands.stop();
  }

  #seen(value: FleetValue): void {
    this.view.take(value);
    if (value.key === `drain.${this.name}`) this.#obey(value);
    if (value.key === "manifest" && this.#membership.state !== "joining") void this.#layoutChanged();
    if (this.#membership.seen(value)) this.#partitions.recheck();
    if (value.key.startsWith("lease.")) {
      const partition = value.key.slice("lease.".length);
      const seen = this.view.leases.get(partition);
      if (seen !== undefined) this.#partitions.leaseSeen(partition, seen.lease);
    }
    if (!/^(?:report|stuck|busy)\./.test(value.key)) this.#plan();
  }

  /** An operator asks this incarnation to leave as planned. */
  #obey({ bytes }: FleetValue): void {
    const request = readDrainRequest(bytes);
    if (request?.incarnation !== this.incarnation || this.#draining !== undefined) return;
    this.#options.telemetry.info("node.drain-asked", { node: this.name, by: request.by });
    this.#ending.resolve({ kind: "drainAsked", by: request.by });
    this.drain().catch((error: unknown) =>
      this.#options.telemetry.error("node.drain-failed", { reason: toPlainFault(error, "HF-4001").message }),
    );
  }

  async #layoutChanged(): Promise<void> {
    const { layoutChanged, telemetry } = this.#options;
    await layoutChanged?.().catch((error: unknown) =>
      telemetry.warn("layout.unread", { reason: toPlainFault(error, "HF-4001").message }),
    );
    this.#plan();
  }

  async #tick(): Promise<void> {
    // At once again: who waits for the next turn may come later than the third heartbeat of another (F18).
    for (let tries = 0; tries < 3 && !(await this.#membership.beat()); tries += 1);
    this.#plan();
    // Who dies between two turns is found when its TTL is over, not at the turn after that.
    const silentInMs = this.view.msUntilSilence;
    if (silentInMs < this.settings.heartbeatMs) this.#options.clock.schedule(silentInMs + 1, () => this.#plan());
  }

  #plan(): void {
    this.#placement.plan();
  }

  /** What is being claimed is released with the rest. A claim that hangs is left to those who stay. */
  #endOfPlanning(): Promise<void> {
    return Promise.race([this.#partitions.settled(), this.#wait(this.settings.leaseTtlMs)]);
  }

  #describe() {
    return describeNode(this.#options, this.#services, this.#partitions.owners, this.#startedAtMs);
  }

  #loadReporter(): LoadReporter {
    const { clock, ports, scheme } = this.#options;
    return new LoadReporter({
      node: this.name,
      fleet: ports.fleet,
      log: ports.log,
      clock,
      partitions: () => this.#partitions.owners,
      partitionsPerStream: Math.max(1, allPartitionsOf(scheme).length / scheme.shards),
      busyFrom: this.settings.busyFrom,
      validMs: 3 * this.settings.heartbeatMs,
    });
  }

  #every(ms: number, work: () => Promise<void>): void {
    const { clock, telemetry } = this.#options;
    const failed = (reason: string): void => telemetry.warn("node.loop-failed", { reason });
    this.#cancelLoops.push(repeatEvery(clock, ms, work, failed));
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.schedule(ms, resolve));
  }
}
