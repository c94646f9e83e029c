import type { Effect } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import type { CellHost, JobTurn, NodeServices, ServedType } from "./cell-host.ts";
import { createCellParts, type CellParts } from "./cell-parts.ts";
import { isAtRest } from "./cell-stores.ts";
import { CellWork } from "./cell-work.ts";
import { CleanTimer } from "./clean-timer.ts";
import { tryAlone } from "./crash-loop/try-alone.ts";
import type { HotActor } from "./hot-actors.ts";
import type { JobAttempt } from "./job-table.ts";
import { endWait, type MailboxItem } from "./mailbox.ts";
import type { InboxMessage, StoredValue } from "./ports/index.ts";
import type { CellQuarantine } from "./quarantine/cell-quarantine.ts";

/** What comes before a message in a trial: an actor that cannot even be loaded is told from a message that it cannot take. */
const LOAD: MailboxItem = { kind: "rehydrate", isAnew: false, done: () => undefined };

/** What a step takes whose record is small, or was not read yet. */
const LEAST_STEP_BYTES = 16 * 1024;

/**
 * One actor on the node that owns its partition: the loop that works off its mailbox, strictly in order.
 *
 * Owns: its mailbox, when an item is tried again, its place in memory. Does not own: the lease (partition), the jobs (job table), what an
 * item does (CellWork).
 *   A1 nothing leaves before the commit that decided it (I1)
 */
export class ActorCell implements HotActor {
  readonly key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;
  readonly #parts: CellParts;
  readonly #work: CellWork;
  #isRunning = false;
  /** It was loaded alone for the message that comes next. */
  #isLoadTried = false;
  #loop: Promise<void> = Promise.resolve();
  #idleSinceMs: number;
  readonly #cleanTimer: CleanTimer;

  constructor(key: string, services: NodeServices, host: CellHost, served: ServedType) {
    this.key = key;
    this.#services = services;
    this.#host = host;
    this.#idleSinceMs = services.clock.monotonicMs();
    this.#parts = createCellParts(
      { key, services, host, served },
      {
        enqueue: (item) => this.#enqueue(item),
        acked: () => this.#dispatched(),
        forget: () => this.#work.forget(),
      },
    );
    this.#work = new CellWork(this.#parts);
    this.#cleanTimer = new CleanTimer(services.clock, services.settings.idleCleanMs, services.flow.stepping, () =>
      this.#enqueue({ kind: "clean" }),
    );
  }

  get quarantine(): CellQuarantine {
    return this.#parts.quarantine;
  }

  /** Hands in a message of the partition's stream. Never blocks. */
  deliver(message: InboxMessage): void {
    this.#parts.mailbox.offer(message);
    this.#wake();
  }

  fireTimer(timer: string, gen: string): void {
    this.#enqueue({ kind: "timer", timer, gen });
  }

  /**
   * Loads and rehydrates the actor; resolves when that is done (or found impossible).
   * @param stored  its value, when it was read already
   * @param isAnew  also when a copy is in memory
   */
  rehydrate(stored?: StoredValue, isAnew = false): Promise<void> {
    if (stored !== undefined) this.#parts.stores.holder.prime(stored);
    return new Promise((done) => this.#enqueue({ kind: "rehydrate", isAnew, done }));
  }

  /** Prepares an attempt of a job whose turn has come. @returns undefined when it is not to run (now) */
  beginJob(turn: JobTurn): Promise<JobAttempt | undefined> {
    const { children } = this.#parts;
    if (this.hasCopy && !children.needsMark(turn.childId)) return children.prepare(turn);
    if (!this.#work.isOverfull()) return new Promise((ready) => this.#enqueue({ kind: "job", turn, ready }));
    this.#host.recheckLater(this.key); // it would keep its place among the jobs, and nobody knows for how long
    return Promise.resolve(undefined);
  }

  /** Something that held up a job may have changed. */
  recheckJobs(): void {
    if (this.hasCopy) this.#enqueue({ kind: "ensureJobs" });
  }

  /** Resolves when the loop stands still; used before the partition is given away. */
  settle(): Promise<void> {
    return this.#loop;
  }

  get hasCopy(): boolean {
    return this.#parts.stores.holder.record !== undefined;
  }

  /** The oldest effect of a stored value that has not left, as far as this actor knows that value. @param seq  of the value */
  oldestUnsent(seq: number, stored: readonly Effect[]): Effect | undefined {
    const { holder, dispatcher } = this.#parts.stores;
    return holder.seq === seq ? dispatcher.unacked[0] : stored[0];
  }

  canLeaveMemory(nowMs: number): boolean {
    if (this.#isBusy || nowMs - this.#idleSinceMs < this.#services.settings.passivateMs) return false;
    const { record } = this.#parts.stores.holder;
    return record === undefined || isAtRest(record);
  }

  /** Gives its place in memory back unless something of it happens here; an outbox that is not cleared yet is cleared first. */
  leave(): void {
    if (this.#isBusy || this.#host.signal.aborted) return;
    if (this.#hasOutbox) {
      this.#enqueue({ kind: "clean" });
      return;
    }
    if (this.#parts.children.hasIdleJobs) this.#host.recheckLater(this.key);
    this.#host.leftMemory(this.key, this.#parts.stores.holder.seq);
  }

  get #isBusy(): boolean {
    const { mailbox, stores, children } = this.#parts;
    return this.#isRunning || !mailbox.isEmpty || stores.dispatcher.size > 0 || children.isBusy;
  }

  get #hasOutbox(): boolean {
    return (this.#parts.stores.holder.record?.outbox.length ?? 0) > 0;
  }

  stop(): void {
    this.#services.flow.hot.left(this);
    this.#parts.stores.dispatcher.stop();
    this.#parts.children.stop();
    this.#cleanTimer.cancel();
    if (!this.#isRunning) this.#giveUp();
  }

  /** Nobody may wait for ever for what this node will not do any more. */
  #giveUp(): void {
    const { mailbox, stores } = this.#parts;
    for (let item = mailbox.next(); item !== undefined; item = mailbox.next()) {
      endWait(item);
    }
    stores.holder.forget();
  }

  #enqueue(item: MailboxItem): void {
    this.#parts.mailbox.push(item);
    if (this.#host.signal.aborted && !this.#isRunning) this.#giveUp();
    else this.#wake();
  }

  #wake(): void {
    if (this.#isRunning || this.#host.signal.aborted) return;
    this.#isRunning = true;
    this.#services.flow.hot.left(this);
    this.#cleanTimer.cancel();
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    const { mailbox, quarantine } = this.#parts;
    for (let backoffMs = 10; !this.#host.signal.aborted;) {
      let isSetAside = false;
      if (this.#work.isOverfull()) break; // F26; `#dispatched` wakes it
      const item = this.#next();
      if (item === undefined && !mailbox.hasOverflow) break;
      try {
        const done = await this.#workOff(item);
        if (done === true) {
          backoffMs = 10;
          continue;
        }
        isSetAside = done === "setAside";
      } catch (error) {
        isSetAside = await quarantine.failed(item, error);
      }
      if (item !== undefined) {
        if (!isSetAside) mailbox.putBack(item);
        if (this.#work.isFull) continue; // its copy is as good as before
        this.#work.forget(); // A2
      }
      await pause(this.#services.clock, backoffMs, this.#host.signal).catch(() => undefined);
      backoffMs = Math.min(2000, backoffMs * 2);
    }
    this.#isRunning = false;
    if (this.#host.signal.aborted) this.#giveUp();
    this.#idleSinceMs = this.#services.clock.monotonicMs();
    if (!mailbox.isEmpty && !this.#work.isOverfull()) this.#wake();
    else {
      this.#scheduleClean();
      if (!this.#host.signal.aborted) this.#services.flow.hot.cameToRest(this);
    }
  }

  #next(): MailboxItem | undefined {
    const { mailbox } = this.#parts;
    const item = mailbox.next();
    if (this.#host.trial === undefined || item?.kind !== "message") return item;
    this.#isLoadTried = !this.hasCopy && !this.#isLoadTried;
    if (!this.#isLoadTried) return item;
    mailbox.putBack(item);
    return LOAD;
  }

  #workOff(item: MailboxItem | undefined): Promise<boolean | "setAside"> {
    const { mailbox, stores } = this.#parts;
    const { trial } = this.#host;
    const work = (): Promise<boolean> => (item === undefined ? mailbox.refill() : this.#work.process(item));
    const weight = Math.max(stores.holder.heldBytes, LEAST_STEP_BYTES);
    const step = (): Promise<boolean> => this.#services.flow.stepping.run(work, weight);
    return trial === undefined || item === undefined ? step() : tryAlone(this.#parts, trial, item, step);
  }

  #scheduleClean(): void {
    if (this.#host.signal.aborted || this.#parts.stores.dispatcher.size > 0 || !this.#hasOutbox) return;
    this.#cleanTimer.start();
  }

  #dispatched(): void {
    const { mailbox, stores } = this.#parts;
    if (!mailbox.isEmpty) this.#wake();
    else if (stores.dispatcher.size === 0 && !this.#isRunning) this.#scheduleClean();
    if (stores.dispatcher.size === 0) void this.#services.crashPoints.reach("after-dispatch", this.key);
  }
}
