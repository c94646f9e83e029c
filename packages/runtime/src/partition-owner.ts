import type { InboxMessage, StoredValue } from "./ports/index.ts";
import type { Ancestor, PartitionNeeds } from "@holdfast/protocol";
import type { ActorCell } from "./actor-cell.ts";
import type { CellCounter, CellHost, CellReport, JobTurn, NodeServices } from "./cell-host.ts";
import { RestingActors } from "./counterparts/resting-actors.ts";
import { Cursor } from "./cursor.ts";
import { PartitionTrial } from "./crash-loop/partition-trial.ts";
import type { CutOffWork } from "./holds/cut-off-work.ts";
import { InboxIntake } from "./inbox-intake.ts";
import { JobCustody } from "./job-custody.ts";
import type { JobAttempt } from "./job-table.ts";
import type { Progress } from "./lease-keeper.ts";
import { ParkedWatch } from "./parked-watch.ts";
import { PartitionCells } from "./partition-cells.ts";
import { PartitionReports, type Counters } from "./partition-reports.ts";
import { KnownWork } from "./rehydration/known-work.ts";
import { TimerQueue, type ArmedTimer } from "./timer-queue.ts";
import { parkUnserved, reportUnserved } from "./unserved-type.ts";

export interface PartitionOwnerOptions {
  readonly partition: string;
  readonly epoch: number;
  readonly generation: string;
  readonly lineage: readonly Ancestor[];
  readonly from: number;
  /** Late messages that former owners counted. */
  readonly lateBefore: number;
  /** Former owners died in a row: its actors are tried one by one. */
  readonly isSuspect: boolean;
  /** Its work was cut off before: what was pending then is set aside. */
  readonly cutOff: CutOffWork | undefined;
  readonly services: NodeServices;
  readonly mayStartEffects: () => boolean;
  readonly isRunElsewhere: (jobKey: string, runner: string | undefined) => boolean;
  readonly fenced: (epoch: number) => void;
  /** The mailbox has ended by itself: nothing comes to this partition any more. */
  readonly deaf: () => void;
  readonly listNeeds: (needs: PartitionNeeds) => Promise<boolean> | undefined;
}

/**
 * One partition this node owns.
 *
 * Owns: its mailbox reader, its timers, its cursor. Does not own: the lease (LeaseKeeper), its actors in memory (PartitionCells), what is
 * restored (rehydration).
 *   P1 the cursor never waits for one actor (F10)
 *   P2 timers fire only after the mailbox was read up to then (F23)
 *   P3 after `stop` nothing of this partition starts any more; its running jobs go on
 */
export class PartitionOwner implements CellHost {
  readonly partition: string;
  readonly epoch: number;
  readonly generation: string;
  readonly lineage: readonly Ancestor[];
  readonly timers: TimerQueue;
  readonly cursor: Cursor;
  readonly work = new KnownWork();
  readonly resting = new RestingActors();
  /** The stored checkpoint: its sequence, and what we put there. */
  lastCheckpoint = { seq: 0, text: "" };
  /** Monotonic time from which the next full scan is counted. */
  fullScanAtMs: number;
  readonly #options: PartitionOwnerOptions;
  readonly #services: NodeServices;
  readonly #stopping = new AbortController();
  readonly #parkedKeys = new Set<string>();
  readonly #recheck = new Set<string>();
  readonly #parkedWatch = new ParkedWatch();
  readonly #cells: PartitionCells;
  readonly #reports = new PartitionReports();
  readonly #custody: JobCustody;
  #subscription: InboxIntake | undefined;
  #trial: PartitionTrial | undefined;
  /** Monotonic time. */
  #caughtUpAtMs: number | undefined;

  constructor(options: PartitionOwnerOptions) {
    this.#options = options;
    this.#services = options.services;
    this.partition = options.partition;
    this.epoch = options.epoch;
    this.generation = options.generation;
    this.lineage = options.lineage;
    this.cursor = new Cursor(options.from);
    this.#cells = new PartitionCells(options.services, this);
    this.#custody = new JobCustody(options.isRunElsewhere);
    if (options.isSuspect) this.#trial = new PartitionTrial(options.services, this.signal);
    const { clock, time } = options.services;
    this.fullScanAtMs = clock.monotonicMs();
    this.timers = new TimerQueue(
      clock,
      () => time.nowMs(),
      (due) => void this.#fire(due),
    );
  }

  /** The actors that are in memory. */
  get cells(): ReadonlyMap<string, ActorCell> {
    return this.#cells.byKey;
  }

  get counters(): Readonly<Counters> {
    return this.#reports.counters;
  }

  /** Which of its actors do not get on, and why. */
  get reports(): ReadonlyMap<string, CellReport> {
    return this.#reports.open;
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Why nothing comes any more; undefined while messages come. */
  get deafness(): unknown {
    return this.#subscription?.failed.reason;
  }

  get isCaughtUp(): boolean {
    return this.#caughtUpAtMs !== undefined;
  }

  get trial(): PartitionTrial | undefined {
    return this.#trial;
  }

  get cutOff(): CutOffWork | undefined {
    return this.#options.cutOff;
  }

  /** Whether nothing of it has taken this node down for a while; what is left of a trial ends with that. */
  isHarmless(): boolean {
    const { clock, settings } = this.#services;
    const { crashWindowMs } = settings;
    if (this.#caughtUpAtMs === undefined || clock.monotonicMs() - this.#caughtUpAtMs < crashWindowMs) return false;
    if (this.#trial?.isThrough(crashWindowMs) === false) return false;
    this.#trial?.end();
    this.#trial = undefined;
    return true;
  }

  /** What a successor has to know of it. */
  get progress(): Progress {
    const { next: cursor, highest } = this.cursor;
    const generation = this.#services.records.generation(this.partition);
    const late = this.#options.lateBefore + this.counters.late;
    return { cursor, highest, late, records: { generation, highest: this.work.newestCommit } };
  }

  /** Its inbox is not read now, for want of memory. */
  get isPaused(): boolean {
    return this.#subscription?.isPaused ?? false;
  }

  /** Times that its inbox was not read for want of memory. */
  get pauses(): number {
    return this.#subscription?.pauses ?? 0;
  }

  /** Starts reading the mailbox from the cursor; parked messages of the former owner are remembered for their actors. */
  async open(): Promise<void> {
    const { log, flow, clock, telemetry } = this.#services;
    const parked = await log.fetch("parked", `${this.partition}.>`, 0, 10_000);
    for (const message of parked) this.#parkedKeys.add(message.key);
    const intake = await InboxIntake.open({
      partition: this.partition,
      from: this.cursor.next,
      deliver: (message) => this.#deliver(message),
      log,
      memory: flow.memory,
      clock,
      telemetry,
    });
    this.#subscription = intake;
    intake.failed.addEventListener("abort", () => this.#options.deaf());
    if (intake.failed.aborted) this.#options.deaf();
  }

  /** Waits until everything stored before now was handed over, then lets timers and recovered jobs run. */
  async catchUp(): Promise<void> {
    await this.#subscription?.readThrough(this.signal);
    if (this.signal.aborted) return;
    this.#caughtUpAtMs = this.#services.clock.monotonicMs();
    this.timers.open();
    for (const cell of this.cells.values()) cell.recheckJobs();
    void this.recheck(); // those that have left memory meanwhile
  }

  /** Lets the cursor of a quiet partition follow its stream: it would keep the messages of its neighbours for ever. */
  async advanceCursor(): Promise<void> {
    const { lastSeq } = await this.#services.log.position(this.partition);
    await this.#subscription?.readThrough(this.signal);
    if (!this.signal.aborted) this.cursor.readThrough(lastSeq);
  }

  /** @returns undefined when this build does not serve its type */
  cellOf(key: string): ActorCell | undefined {
    return this.#cells.of(key);
  }

  /** Loads an actor and takes up its work. @param stored its value, when it was read already */
  rehydrate(key: string, stored?: StoredValue): Promise<void> {
    if (this.signal.aborted) return Promise.resolve();
    const cell = this.#cells.of(key);
    // What was read before it left memory may be older than what it stored since.
    if (cell !== undefined) return cell.rehydrate(this.#cells.hasLeft(key) ? undefined : stored);
    reportUnserved(this, key);
    return Promise.resolve();
  }

  beginJob(key: string, turn: JobTurn): Promise<JobAttempt | undefined> {
    const cell = this.signal.aborted ? undefined : this.#cells.of(key);
    return cell === undefined ? Promise.resolve(undefined) : cell.beginJob(turn);
  }

  leftMemory(key: string, seq: number): void {
    this.#cells.leave(key, seq);
  }

  /** @see PartitionCells.isInHand */
  isInHand(key: string, seq: number): boolean {
    return this.#cells.isInHand(key, seq);
  }

  /** What changes from now on is for the next sweep. */
  swept(): void {
    this.#cells.swept();
  }

  /** Drops from memory what is at rest; timers stay armed. */
  releaseIdle(): void {
    this.#cells.releaseIdle();
  }

  /** After one of our heartbeats was stored: asks those again whose jobs were held up, once everything stored by now was read. */
  async recheck(): Promise<void> {
    if (this.#recheck.size === 0 || !this.isCaughtUp) return;
    const keys = [...this.#recheck];
    this.#recheck.clear();
    try {
      await this.#subscription?.readThrough(this.signal);
    } catch {
      for (const key of keys) this.#recheck.add(key);
      return;
    }
    for (const key of keys) {
      const cell = this.cells.get(key);
      if (cell?.hasCopy === true) cell.recheckJobs();
      else void this.#services.flow.rehydrating.run(() => this.rehydrate(key));
    }
  }

  /** P3. Resolves when every commit in flight has ended. */
  async stop(): Promise<void> {
    if (this.signal.aborted) return;
    this.#stopping.abort(); // before anything is awaited: who is fenced must not judge another message
    this.timers.close();
    await this.#subscription?.stop();
    this.#cells.stop();
    this.#services.jobs.forgetWaiting(this.partition); // P3
    await this.#cells.settle();
    await this.#services.jobs.begun(this.partition); // who is told what runs here must be told of them too
    this.#cells.clear();
  }

  mayStartEffects(): boolean {
    return !this.signal.aborted && this.isLeaseFresh();
  }

  isLeaseFresh(): boolean {
    return this.#options.mayStartEffects();
  }

  isRunElsewhere(jobKey: string, runner: string | undefined): boolean {
    return this.#custody.holds(jobKey, runner);
  }

  listNeeds(needs: PartitionNeeds): Promise<boolean> | undefined {
    return this.#options.listNeeds(needs);
  }

  considered(message: InboxMessage): void {
    this.cursor.considered(message.seq);
  }

  recheckLater(key: string): void {
    this.#recheck.add(key);
  }

  fenced(epoch: number): void {
    this.#options.fenced(epoch);
  }

  hasParked(key: string): boolean {
    return this.#parkedKeys.has(key);
  }

  parked(key: string): void {
    this.#parkedKeys.add(key);
  }

  unparked(key: string): void {
    this.#parkedKeys.delete(key);
    this.#parkedWatch.forget(key);
    this.resolved(key, "orphan-messages");
  }

  waits(key: string, dueMs: number): void {
    this.#parkedWatch.waits(key, dueMs);
  }

  /** Offers messages again that have waited long enough. */
  async offerDue(): Promise<void> {
    const { time, flow } = this.#services;
    const due = this.#parkedWatch.takeDue(time.nowMs());
    await Promise.all(due.map((key) => flow.rehydrating.run(() => this.rehydrate(key))));
  }

  /** Keys for which messages are set aside. */
  get parkedKeys(): Iterable<string> {
    return this.#parkedKeys;
  }

  report(key: string, state: CellReport): void {
    this.#reports.report(key, state);
  }

  resolved(key: string, ...kinds: readonly CellReport["kind"][]): void {
    this.#reports.resolved(key, ...kinds);
  }

  count(counter: CellCounter): void {
    this.#reports.count(counter);
  }

  #deliver(message: InboxMessage): void {
    if (this.signal.aborted) return;
    this.cursor.delivered(message.seq);
    const cell = this.#cells.of(message.key);
    if (cell === undefined) void parkUnserved(this.#services, this, message);
    else cell.deliver(message);
  }

  async #fire(due: readonly ArmedTimer[]): Promise<void> {
    try {
      await this.#subscription?.readThrough(this.signal); // P2
    } catch {
      if (this.signal.aborted) return;
      // The broker is away. Not at once again: a reader that has ended answers at once, too.
      const { clock, settings } = this.#services;
      clock.schedule(settings.heartbeatMs, () => {
        if (!this.signal.aborted) for (const timer of due) this.timers.armAgain(timer);
      });
      return;
    }
    if (this.signal.aborted) return;
    for (const timer of due) this.#cells.of(timer.key)?.fireTimer(timer.timer, timer.gen);
  }
}
