import type { InboxMessage, StoredValue } from "./ports/index.ts";
import { parseActorKey, type Ancestor, type PartitionNeeds } from "@holdfast/protocol";
import { ActorCell } from "./actor-cell.ts";
import type { CellCounter, CellHost, CellReport, JobTurn, NodeServices } from "./cell-host.ts";
import { Cursor } from "./cursor.ts";
import { InboxIntake } from "./inbox-intake.ts";
import type { JobAttempt } from "./job-table.ts";
import { CELL_BYTES } from "./memory-budget.ts";
import { encodeParked } from "./parked-message.ts";
import { KnownWork } from "./rehydration/known-work.ts";
import { TimerQueue, type ArmedTimer } from "./timer-queue.ts";

export interface PartitionOwnerOptions {
  readonly partition: string;
  readonly epoch: number;
  readonly generation: string;
  readonly lineage: readonly Ancestor[];
  readonly from: number;
  readonly services: NodeServices;
  readonly mayStartEffects: () => boolean;
  readonly isRunElsewhere: (jobKey: string, runner: string | undefined) => boolean;
  readonly fenced: (epoch: number) => void;
  /** The mailbox has ended by itself: nothing comes to this partition any more. */
  readonly deaf: () => void;
  readonly listNeeds: (needs: PartitionNeeds) => Promise<boolean> | undefined;
}

export type Counters = Record<CellCounter, number>;

/**
 * One partition this node owns.
 *
 * Owns: its mailbox reader, its cells, its timers, its cursor. Does not own: the lease (LeaseKeeper), what is restored (rehydration).
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
  /** The stored checkpoint: its sequence, and what we put there. */
  lastCheckpoint = { seq: 0, text: "" };
  /** Monotonic time from which the next full scan is counted. */
  fullScanAtMs: number;
  readonly counters: Counters = {
    committed: 0,
    dropped: 0,
    duplicates: 0,
    stale: 0,
    unknown: 0,
    restored: 0,
    resent: 0,
    reissued: 0,
    adopted: 0,
    parked: 0,
    quarantined: 0,
  };
  readonly reports = new Map<string, CellReport>();
  readonly cells = new Map<string, ActorCell>();
  readonly #options: PartitionOwnerOptions;
  readonly #services: NodeServices;
  readonly #stopping = new AbortController();
  readonly #parkedKeys = new Set<string>();
  readonly #recheck = new Set<string>();
  /** Jobs that another node was running when we last looked. */
  readonly #custody = new Set<string>();
  /** Actors that gave their place in memory back, with the sequence of their record then. */
  readonly #leftAt = new Map<string, number>();
  #subscription: InboxIntake | undefined;
  #isCaughtUp = false;

  constructor(options: PartitionOwnerOptions) {
    this.#options = options;
    this.#services = options.services;
    this.partition = options.partition;
    this.epoch = options.epoch;
    this.generation = options.generation;
    this.lineage = options.lineage;
    this.cursor = new Cursor(options.from);
    const { clock, time } = options.services;
    this.fullScanAtMs = clock.monotonicMs();
    this.timers = new TimerQueue(
      clock,
      () => time.nowMs(),
      (due) => void this.#fire(due),
    );
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Why nothing comes any more; undefined while messages come. */
  get deafness(): unknown {
    return this.#subscription?.failed.reason;
  }

  get isCaughtUp(): boolean {
    return this.#isCaughtUp;
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
    this.#isCaughtUp = true;
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
    return this.#cell(key);
  }

  /** Loads an actor and takes up its work. @param stored its value, when it was read already */
  rehydrate(key: string, stored?: StoredValue): Promise<void> {
    if (this.signal.aborted) return Promise.resolve();
    const cell = this.#cell(key);
    // What was read before it left memory may be older than what it stored since.
    if (cell !== undefined) return cell.rehydrate(this.#leftAt.has(key) ? undefined : stored);
    this.#reportUnserved(key);
    return Promise.resolve();
  }

  beginJob(key: string, turn: JobTurn): Promise<JobAttempt | undefined> {
    const cell = this.signal.aborted ? undefined : this.#cell(key);
    return cell === undefined ? Promise.resolve(undefined) : cell.beginJob(turn);
  }

  leftMemory(key: string, seq: number): void {
    this.cells.get(key)?.stop();
    if (!this.cells.delete(key)) return;
    this.#services.flow.memory.hold("cells", -CELL_BYTES);
    this.#leftAt.set(key, seq);
  }

  /** Whether everything a stored record asks for is taken care of here: its copy is in memory, or left it as it is stored. */
  isInHand(key: string, seq: number): boolean {
    return this.cells.get(key)?.hasCopy === true || this.#leftAt.get(key) === seq;
  }

  /** What changes from now on is for the next sweep. */
  swept(): void {
    this.#leftAt.clear();
  }

  /** After one of our heartbeats was stored: asks those again whose jobs were held up, once everything stored by now was read. */
  async recheck(): Promise<void> {
    if (this.#recheck.size === 0 || !this.#isCaughtUp) return;
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

  /** Drops cells that are at rest; their timers stay armed. */
  releaseIdle(): void {
    const now = this.#services.clock.monotonicMs();
    for (const [key, cell] of this.cells) {
      if (cell.canLeaveMemory(now)) this.leftMemory(key, 0);
    }
  }

  /** P3. Resolves when every commit in flight has ended. */
  async stop(): Promise<void> {
    if (this.signal.aborted) return;
    this.#stopping.abort(); // before anything is awaited: who is fenced must not judge another message
    this.timers.close();
    await this.#subscription?.stop();
    for (const cell of this.cells.values()) cell.stop();
    this.#services.jobs.forgetWaiting(this.partition); // P3
    await Promise.all([...this.cells.values()].map((cell) => cell.settle()));
    await this.#services.jobs.begun(this.partition); // who is told what runs here must be told of them too
    this.#services.flow.memory.hold("cells", -CELL_BYTES * this.cells.size);
    this.cells.clear();
  }

  mayStartEffects(): boolean {
    return !this.signal.aborted && this.isLeaseFresh();
  }

  isLeaseFresh(): boolean {
    return this.#options.mayStartEffects();
  }

  /** True once more after custody ended: the outcome was stored before that, and the next look comes after a read through. */
  isRunElsewhere(jobKey: string, runner: string | undefined): boolean {
    const wasElsewhere = this.#custody.delete(jobKey);
    const isElsewhere = this.#options.isRunElsewhere(jobKey, runner);
    if (isElsewhere) this.#custody.add(jobKey);
    return isElsewhere || wasElsewhere;
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
    this.resolved(key, "orphan-messages");
  }

  /** Keys for which messages are set aside. */
  get parkedKeys(): Iterable<string> {
    return this.#parkedKeys;
  }

  report(key: string, state: CellReport): void {
    const known = this.reports.get(key)?.kind;
    const hasCause = known === "quarantined" || known === "parked"; // why its messages are set aside
    if (state.kind !== "orphan-messages" || !hasCause) this.reports.set(key, state);
  }

  resolved(key: string, ...kinds: readonly CellReport["kind"][]): void {
    const known = this.reports.get(key)?.kind;
    if (known !== undefined && kinds.includes(known)) this.reports.delete(key);
  }

  count(counter: CellCounter): void {
    this.counters[counter] += 1;
  }

  #deliver(message: InboxMessage): void {
    if (this.signal.aborted) return;
    this.cursor.delivered(message.seq);
    const cell = this.#cell(message.key);
    if (cell === undefined) {
      void this.#refuseUnknownType(message);
      return;
    }
    cell.deliver(message);
  }

  #cell(key: string): ActorCell | undefined {
    const existing = this.cells.get(key);
    if (existing !== undefined) return existing;
    const served = this.#services.types.get(parseActorKey(key).type);
    if (served === undefined) return undefined;
    const cell = new ActorCell(key, this.#services, this, served);
    this.cells.set(key, cell);
    this.#services.flow.memory.hold("cells", CELL_BYTES);
    return cell;
  }

  /** A type this build does not serve: its messages wait, parked, for a node that does. */
  async #refuseUnknownType(message: InboxMessage): Promise<void> {
    const { codec, log, telemetry } = this.#services;
    for (let tries = 0; !this.signal.aborted; tries += 1) {
      const outcome = await log.publish(
        "parked",
        message.key,
        encodeParked(codec, message),
        `parked:${message.messageId}`,
      );
      if (outcome.kind === "accepted") break;
      await new Promise<void>((resolve) =>
        this.#services.clock.schedule(Math.min(2000, 50 * 2 ** Math.min(tries, 6)), resolve),
      );
    }
    this.parked(message.key);
    this.#reportUnserved(message.key);
    this.count("parked");
    telemetry.error("message.unknown-type", { key: message.key, seq: message.seq });
    this.considered(message);
  }

  /** The lease says what is missing: a node that serves the type then asks for the partition. */
  #reportUnserved(key: string): void {
    const { type } = parseActorKey(key);
    this.report(key, {
      kind: "unserved",
      why: `this node does not serve type ${type}; a node that does takes it over`,
    });
    void this.listNeeds({ formats: [], machines: { [type]: "" } });
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
    for (const timer of due) this.#cell(timer.key)?.fireTimer(timer.timer, timer.gen);
  }
}
