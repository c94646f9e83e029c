import { RuntimeFault, toPlainFault, type DrainRequest, type Restart } from "@holdfast/protocol";
import type { FleetView } from "./fleet-view.ts";
import type { FlowControl } from "./flow-control.ts";
import type { JobTable } from "./job-table.ts";
import { NodeDuties } from "./node-duties.ts";
import { readDrainRequest, replacedFault, type NodeEnding } from "./node-ending.ts";
import { createNodeParts, type NodeParts } from "./node-parts.ts";
import type { PartitionOwner } from "./partition-owner.ts";
import type { FleetValue } from "./ports/index.ts";
import type { RuntimeNodeOptions } from "./runtime-node-options.ts";
import { reportLint } from "./served-types.ts";
import { prepareRestart } from "./restarts/prepare-restart.ts";
import type { RuntimeSettings } from "./settings.ts";

/**
 * One agent node: a heartbeat, the partitions it owns, and their actors.
 *
 * Owns: how it joins and leaves. Does not own: connections (they are handed in and closed by the caller).
 *   N1 claim, then act: nothing of a partition starts before its lease is ours
 *   N2 a greater epoch ends our part of a partition at once, its jobs included
 *   N3 a planned leave moves ownership at once and keeps custody of running jobs until they settle or the grace time ends (F22)
 *   N5 a process that is to come back has stored that, and what it keeps, before it leaves anything
 *   N4 nobody is waited for who does not answer for longer than a lease lasts: by then others own what was ours
 */
export class RuntimeNode {
  readonly name: string;
  readonly #options: RuntimeNodeOptions;
  readonly #parts: NodeParts;
  readonly #duties: NodeDuties;
  readonly #stopping = new AbortController();
  readonly #ending = Promise.withResolvers<NodeEnding>();
  #draining: Promise<void> | undefined;
  /** An operator has asked it to leave. */
  #isAsked = false;
  #watch: { stop(): Promise<void> } | undefined;

  constructor(options: RuntimeNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.#parts = createNodeParts(options, {
      replaced: () => this.#wasReplaced(),
      stopping: this.#stopping.signal,
    });
    this.#duties = new NodeDuties(options, this.#parts);
  }

  get incarnation(): string {
    return this.#parts.services.incarnation;
  }

  get view(): FleetView {
    return this.#parts.view;
  }

  get settings(): RuntimeSettings {
    return this.#parts.services.settings;
  }

  /** Resolves when this node ends, or begins to, without its process having asked for it: the process should follow. */
  get ending(): Promise<NodeEnding> {
    return this.#ending.promise;
  }

  get partitions(): ReadonlyMap<string, PartitionOwner> {
    return this.#parts.partitions.owners;
  }

  get jobs(): JobTable {
    return this.#parts.services.jobs;
  }

  /** What bounds the work of this node, and how much of it is used. */
  get flow(): FlowControl {
    return this.#parts.services.flow;
  }

  /** Joins the fleet. Resolves once the first heartbeat is stored; partitions follow. @throws RuntimeFault HF-3004 */
  async start(): Promise<void> {
    const { membership, commands, services } = this.#parts;
    const { telemetry, ports } = this.#options;
    await membership.claimName(this.#stopping.signal);
    await commands.start(); // before anything may be claimed
    this.#watch = await ports.fleet.watch((value) => this.#seen(value));
    membership.state = "serving";
    while (!(await membership.beat()) && !this.#stopping.signal.aborted) await this.#wait(this.settings.heartbeatMs);
    telemetry.info("node.joined", {
      node: this.name,
      incarnation: this.incarnation,
      types: [...services.types.keys()],
    });
    this.#duties.start(() => this.#tick());
    reportLint(services.types, telemetry);
    this.#plan();
  }

  /** Leaves as planned (N3). Resolves when everything moved and jobs have settled, or the grace time is over. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  async #drain(): Promise<void> {
    const { telemetry, clock } = this.#options;
    const { membership, partitions } = this.#parts;
    if (membership.state === "left") return;
    membership.state = "draining";
    telemetry.info("node.draining", {
      node: this.name,
      partitions: partitions.owners.size,
      jobs: this.jobs.size,
    });
    await membership.beat();
    await this.#endOfPlanning();
    if (!(await this.#releaseAll())) return this.stop();
    const deadlineMs = clock.monotonicMs() + this.settings.drainGraceMs;
    while (this.jobs.size > 0 && clock.monotonicMs() < deadlineMs && !this.#stopping.signal.aborted)
      await this.#wait(50);
    await this.stop();
  }

  /** Leaves now: running jobs are given up, their partitions released. */
  async stop(): Promise<void> {
    const { membership, commands } = this.#parts;
    if (membership.state === "left") return;
    membership.state = "draining"; // what is released now must not be claimed again
    this.#duties.stop();
    for (const key of this.jobs.keys()) this.jobs.stop(key, "the node stops");
    await this.#endOfPlanning();
    await this.#releaseAll(() => Promise.resolve(true));
    membership.state = "left";
    await membership.beat();
    this.#stopping.abort();
    await this.#watch?.stop();
    await commands.stop();
    this.#options.telemetry.info("node.left", { node: this.name });
  }

  /** Another incarnation lives under our name (F14): nothing here is ours any more. */
  #wasReplaced(): void {
    const { telemetry } = this.#options;
    telemetry.error("node.replaced", { node: this.name, incarnation: this.incarnation, code: "HF-3004" });
    this.#ending.resolve({ kind: "replaced", fault: replacedFault(this.name) });
    this.#duties.stop();
    for (const key of this.jobs.keys()) this.jobs.stop(key, "another node has this name");
    this.#parts.partitions.abandon();
    this.#stopping.abort();
    void this.#watch?.stop();
    void this.#parts.commands.stop();
  }

  #seen(value: FleetValue): void {
    const { membership, partitions, stopFlag, restarts } = this.#parts;
    this.view.take(value);
    restarts.take(value);
    stopFlag.take(value);
    if (value.key === `drain.${this.name}`) this.#obey(value);
    if (value.key === "manifest" && membership.state !== "joining") void this.#layoutChanged();
    if (membership.seen(value)) partitions.recheck();
    if (value.key.startsWith("lease.")) {
      const partition = value.key.slice("lease.".length);
      const seen = this.view.leases.get(partition);
      if (seen !== undefined) partitions.leaseSeen(partition, seen.lease);
    }
    if (!/^(?:report|stuck|busy)\./.test(value.key)) this.#plan();
  }

  /** An operator asks this incarnation to leave as planned. */
  #obey({ bytes }: FleetValue): void {
    const request = readDrainRequest(bytes);
    if (request?.incarnation !== this.incarnation || this.#isAsked || this.#draining !== undefined) return;
    this.#isAsked = true; // N5: whatever asks later changes nothing
    this.#options.telemetry.info("node.drain-asked", { node: this.name, by: request.by });
    this.#leaveAsAsked(request).catch((error: unknown) =>
      this.#options.telemetry.error("node.drain-failed", { reason: toPlainFault(error, "HF-4001").message }),
    );
  }

  /** N5. */
  async #leaveAsAsked(request: DrainRequest): Promise<void> {
    const { by, restart } = request;
    if (restart === undefined) this.#ending.resolve({ kind: "drainAsked", by });
    else {
      const prepared = await this.#prepareRestart(request);
      this.#isAsked = prepared !== undefined;
      if (prepared === undefined) throw new RuntimeFault("HF-4008", `Restart ${restart.id}: it could not be stored.`);
      this.#ending.resolve({ kind: "restartAsked", by, id: prepared.id });
    }
    await this.drain();
  }

  #prepareRestart(request: DrainRequest): Promise<Restart | undefined> {
    const { services, restarts, partitions, isServedElsewhere } = this.#parts;
    const { process, ports } = this.#options;
    const { pid = 0, startedAtMs = 0, exitProof } = process ?? {};
    const generation = { incarnation: this.incarnation, pid, startedAtMs };
    return prepareRestart(
      {
        services,
        fleet: ports.fleet,
        book: restarts,
        owners: partitions.owners,
        generation,
        exitProof,
        isServedElsewhere,
      },
      request,
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
    for (let tries = 0; tries < 3 && !(await this.#parts.membership.beat()); tries += 1);
    await this.#parts.restarts.tick().catch(() => undefined); // tried again with the next heartbeat
    this.#plan();
    // Who dies between two turns is found when its TTL is over, not at the turn after that.
    const silentInMs = this.view.msUntilSilence;
    if (silentInMs < this.settings.heartbeatMs) this.#options.clock.schedule(silentInMs + 1, () => this.#plan());
  }

  #plan(): void {
    this.#parts.placement.plan();
  }

  /** What is being claimed is released with the rest. A claim that hangs is left to those who stay. */
  #endOfPlanning(): Promise<void> {
    return Promise.race([this.#parts.partitions.settled(), this.#wait(this.settings.leaseTtlMs)]);
  }

  /** N4. @returns false when nobody answers any more; a release that failed while somebody does is left to the end of its lease */
  async #releaseAll(announce?: () => Promise<boolean>): Promise<boolean> {
    const { leases, membership, partitions } = this.#parts;
    let failure: string | undefined;
    let isOver = false;
    const over = partitions
      .releaseAll(announce)
      .catch((error: unknown) => (failure = toPlainFault(error, "HF-4001").message))
      .finally(() => (isOver = true));
    for (;;) {
      await Promise.race([this.#wait(this.settings.heartbeatMs), ...(isOver ? [] : [over])]);
      if (isOver && failure === undefined) return true;
      const isAnswered = await membership.beat();
      if (isAnswered ? !isOver : leases.isFresh) continue;
      const reason = failure ?? "no answer";
      this.#options.telemetry.warn("node.unreleased", { node: this.name, partitions: this.partitions.size, reason });
      return isAnswered;
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.schedule(ms, resolve));
  }
}
