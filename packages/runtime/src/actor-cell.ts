import { localEffectsOf, type StepMessage } from "@holdfast/durable";
import { RuntimeFault, type ActorRecord } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import { CellChildren } from "./cell-children.ts";
import type { CellHost, JobTurn, NodeServices, ServedType } from "./cell-host.ts";
import { ambiguousItem, failedItem, hostItem, localStepOf } from "./cell-items.ts";
import { CellMail } from "./cell-mail.ts";
import { createOutbox } from "./cell-outbox.ts";
import { CellStepper } from "./cell-stepper.ts";
import { clearOutbox, fitToMachine, isAtRest, storeMark, type CellStores } from "./cell-stores.ts";
import type { HotActor } from "./hot-actors.ts";
import type { JobAttempt } from "./job-table.ts";
import { endWait, Mailbox, type MailboxItem } from "./mailbox.ts";
import { refusalOfOutside } from "./message-reading.ts";
import type { OutboxDispatcher } from "./outbox-dispatcher.ts";
import type { InboxMessage, StoredValue } from "./ports/index.ts";
import { CellQuarantine } from "./quarantine/cell-quarantine.ts";
import { takeWithoutRecord } from "./quarantine/take-without-record.ts";
import { skipMessage, type SkipParts } from "./quarantine/skip-message.ts";
import { RecordHolder } from "./record-holder.ts";
import { judgeStart, keepOut } from "./retention/judge-start.ts";

/** What a step takes whose record is small, or was not read yet. */
const LEAST_STEP_BYTES = 16 * 1024;

/**
 * One actor on the node that owns its partition: take, load, step, commit, dispatch, strictly in order.
 *
 * Owns: its mailbox, the decoded record, its outbox. Does not own: the lease (partition), the jobs (job table).
 *   A1 nothing leaves before the commit that decided it (I1)
 *   A2 any outcome but `committed` drops the decoded copy (F52); what is loaded is rehydrated before it is stepped (I14)
 *   A3 a message counts as considered only after its commit, or when nothing is to be stored for it (C1)
 *   A4 what cannot be read here parks the messages, never the partition (F10)
 */
export class ActorCell implements HotActor {
  readonly key: string;
  readonly quarantine: CellQuarantine;
  readonly #services: NodeServices;
  readonly #host: CellHost;
  readonly #served: ServedType;
  readonly #holder: RecordHolder;
  readonly #dispatcher: OutboxDispatcher;
  readonly #children: CellChildren;
  readonly #mailbox: Mailbox;
  readonly #mail: CellMail;
  readonly #stores: CellStores;
  readonly #stepper: CellStepper;
  readonly #parts: SkipParts;
  #isRunning = false;
  /** The next step does not fit into a record together with what has not left yet. */
  #isFull = false;
  #loop: Promise<void> = Promise.resolve();
  #idleSinceMs: number;
  #cancelClean: (() => void) | undefined;

  constructor(key: string, services: NodeServices, host: CellHost, served: ServedType) {
    this.key = key;
    this.#services = services;
    this.#host = host;
    this.#served = served;
    this.#idleSinceMs = services.clock.monotonicMs();
    this.#holder = new RecordHolder(key, services, host, served);
    this.#mailbox = new Mailbox(key, services.log, services.flow.memory, served.definition.limits);
    this.#mail = new CellMail(key, services, host);
    this.quarantine = new CellQuarantine(key, services, host, this.#mail);
    const record = (): ActorRecord | undefined => this.#holder.record;
    const enqueue = (item: MailboxItem): void => this.#enqueue(item);
    this.#dispatcher = createOutbox({ key, services, host, served, record, acked: () => this.#dispatched(), enqueue });
    this.#stores = { services, served, holder: this.#holder, dispatcher: this.#dispatcher };
    const settle = (make: (current: ActorRecord) => MailboxItem): void => {
      const current = record();
      if (current !== undefined) this.#enqueue(make(current));
    };
    this.#children = new CellChildren({
      services,
      host,
      served,
      key,
      record,
      whenJournaled: (rev) => this.#dispatcher.whenJournaled(rev),
      mark: (childId, attempt) => this.#mark(childId, attempt),
      fromHost: (childKey, event) => this.#enqueue(hostItem(childKey, event, record())),
      settleAmbiguous: (childId, entry) => settle((current) => ambiguousItem(current, childId, entry)),
      settleFailed: (childId, entry, fault) => settle((current) => failedItem(current, childId, entry.key, fault)),
    });
    this.#stepper = new CellStepper({
      key,
      host,
      stores: this.#stores,
      children: this.#children,
      mail: this.#mail,
    });
    const [stores, stepper, mail, quarantine] = [this.#stores, this.#stepper, this.#mail, this.quarantine];
    this.#parts = { stores, stepper, mail, quarantine, reoffer: () => this.#reoffer() };
  }

  /** Hands in a message of the partition's stream. Never blocks. */
  deliver(message: InboxMessage): void {
    this.#mailbox.offer(message);
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
    if (stored !== undefined) this.#holder.prime(stored);
    return new Promise((done) => this.#enqueue({ kind: "rehydrate", isAnew, done }));
  }

  /** Prepares an attempt of a job whose turn has come. @returns undefined when it is not to run (now) */
  beginJob(turn: JobTurn): Promise<JobAttempt | undefined> {
    if (this.#holder.record !== undefined && !this.#children.needsMark(turn.childId))
      return this.#children.prepare(turn);
    if (!this.#isOverfull()) return new Promise((ready) => this.#enqueue({ kind: "job", turn, ready }));
    this.#host.recheckLater(this.key); // it would keep its place among the jobs, and nobody knows for how long
    return Promise.resolve(undefined);
  }

  /** Something that held up a job may have changed. */
  recheckJobs(): void {
    if (this.#holder.record !== undefined) this.#enqueue({ kind: "ensureJobs" });
  }

  /** Resolves when the loop stands still; used before the partition is given away. */
  settle(): Promise<void> {
    return this.#loop;
  }

  get hasCopy(): boolean {
    return this.#holder.record !== undefined;
  }

  canLeaveMemory(nowMs: number): boolean {
    if (this.#isBusy || nowMs - this.#idleSinceMs < this.#services.settings.passivateMs) return false;
    return this.#holder.record === undefined || isAtRest(this.#holder.record);
  }

  /** Gives its place in memory back unless something of it happens here; an outbox that is not cleared yet is cleared first. */
  leave(): void {
    if (this.#isBusy || this.#host.signal.aborted) return;
    if ((this.#holder.record?.outbox.length ?? 0) > 0) {
      this.#enqueue({ kind: "clean" });
      return;
    }
    if (this.#children.hasIdleJobs) this.#host.recheckLater(this.key);
    this.#host.leftMemory(this.key, this.#holder.seq);
  }

  get #isBusy(): boolean {
    return this.#isRunning || !this.#mailbox.isEmpty || this.#dispatcher.size > 0 || this.#children.isBusy;
  }

  stop(): void {
    this.#services.flow.hot.left(this);
    this.#dispatcher.stop();
    this.#children.stop();
    this.#cancelClean?.();
    if (!this.#isRunning) this.#giveUp();
  }

  /** Nobody may wait for ever for what this node will not do any more. */
  #giveUp(): void {
    for (let item = this.#mailbox.next(); item !== undefined; item = this.#mailbox.next()) {
      endWait(item);
    }
    this.#holder.forget();
  }

  #enqueue(item: MailboxItem): void {
    this.#mailbox.push(item);
    if (this.#host.signal.aborted && !this.#isRunning) this.#giveUp();
    else this.#wake();
  }

  #wake(): void {
    if (this.#isRunning || this.#host.signal.aborted) return;
    this.#isRunning = true;
    this.#services.flow.hot.left(this);
    this.#cancelClean?.();
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    for (let backoffMs = 10; !this.#host.signal.aborted;) {
      let isSetAside = false;
      if (this.#isOverfull()) break; // F26; `#dispatched` wakes it
      const item = this.#mailbox.next();
      if (item === undefined && !this.#mailbox.hasOverflow) break;
      try {
        const work = (): Promise<boolean> => (item === undefined ? this.#mailbox.refill() : this.#process(item));
        const done = await this.#services.flow.stepping.run(work, Math.max(this.#holder.heldBytes, LEAST_STEP_BYTES));
        if (done) {
          backoffMs = 10;
          continue;
        }
      } catch (error) {
        isSetAside = await this.quarantine.failed(item, error);
      }
      if (item !== undefined) {
        if (!isSetAside) this.#mailbox.putBack(item);
        if (this.#isFull) continue; // its copy is as good as before
        this.#forget(); // A2
      }
      await pause(this.#services.clock, backoffMs, this.#host.signal).catch(() => undefined);
      backoffMs = Math.min(2000, backoffMs * 2);
    }
    this.#isRunning = false;
    if (this.#host.signal.aborted) this.#giveUp();
    this.#idleSinceMs = this.#services.clock.monotonicMs();
    if (!this.#mailbox.isEmpty && !this.#isOverfull()) this.#wake();
    else {
      this.#scheduleClean();
      if (!this.#host.signal.aborted) this.#services.flow.hot.cameToRest(this);
    }
  }

  #isOverfull(): boolean {
    const isOverfull = this.#holder.isOverfull(this.#dispatcher, this.#isFull);
    if (!isOverfull) this.#isFull = false;
    return isOverfull;
  }

  /** @returns false when the item must be tried again on a fresh copy */
  async #process(item: MailboxItem): Promise<boolean> {
    if (this.#host.signal.aborted) {
      this.#mailbox.putBack(item);
      return true;
    }
    if (item.kind === "rehydrate" && item.isAnew) this.#forget();
    if (this.#holder.record === undefined) {
      if (!(await this.#load())) return this.#withoutRecord(item);
      if (item.kind === "rehydrate") await this.#reoffer();
      else if (await this.#reoffer(item)) return true;
    }
    switch (item.kind) {
      case "message":
        return this.#take(item.message, item.isReoffered);
      case "timer":
      case "host":
      case "settled":
        return this.#applyLocal(localStepOf(item));
      case "job":
        item.ready(await this.#children.prepare(item.turn));
        return true;
      case "ensureJobs":
        if (this.#mailbox.hasOverflow) this.#host.recheckLater(this.key);
        else this.#children.ensureJobs();
        return true;
      case "rehydrate":
        item.done();
        return true;
      case "clean":
        return !this.#mailbox.isEmpty || clearOutbox(this.#stores);
    }
  }

  /** @returns false when there is nothing here to step: absent, unreadable, or no longer ours */
  async #load(): Promise<boolean> {
    const isLoaded = (await this.#holder.load()) === "loaded" && (await fitToMachine(this.#stores));
    await this.quarantine.looked(this.#holder.fault, isLoaded);
    if (!isLoaded) return false;
    const current = this.#holder.record;
    if (current === undefined) return false;
    this.#host.count("restored");
    if (current.outbox.length > 0) this.#host.count("resent");
    this.#dispatcher.add(current.outbox);
    this.#children.apply(localEffectsOf(current).filter((effect) => effect.kind !== "startJob"));
    this.#mailbox.push({ kind: "ensureJobs" }); // behind the messages that wait: one of them may be an outcome (K3)
    return true;
  }

  /** What happens to an item whose actor has no readable record here. */
  async #withoutRecord(item: MailboxItem): Promise<boolean> {
    const isOver = this.#host.signal.aborted;
    if (!isOver && this.#holder.record !== undefined) return false; // its repair for this build is not stored yet
    const { unreadable } = this.#holder;
    if (item.kind === "rehydrate" && !isOver && unreadable === undefined) await this.#reoffer(); // a start may be among them
    endWait(item);
    if (isOver || item.kind !== "message") return true;
    return takeWithoutRecord(this.#parts, item, () => this.#take(item.message, item.isReoffered));
  }

  async #take(message: InboxMessage, isReoffered: boolean): Promise<boolean> {
    if (!isReoffered && this.#holder.wasConsidered(message)) return this.#mail.finish(message, false);
    if (this.quarantine.takeSkip(message)) return skipMessage(this.#parts, message, isReoffered);
    const read = this.#mail.read(message);
    if (read instanceof RuntimeFault) return this.quarantine.unreadableMessage(message, isReoffered, read);
    const undo = isReoffered ? undefined : this.#holder.consider(message);
    const verdict = await judgeStart(this.#services, this.#holder.record, message.key, read);
    if (verdict !== "wanted") return keepOut(this.#mail, message, isReoffered, verdict);
    const refusal = message.principal === undefined ? undefined : refusalOfOutside(this.#served.definition, read);
    if (refusal !== undefined) return this.#mail.refuse(message, isReoffered, read, refusal);
    const applied = await this.#stepper.take(read.step, read.blobs, (outcome) => this.#mail.reply(read, outcome));
    if (applied.kind === "aside") return this.#mail.park(message, isReoffered, applied.why);
    if (applied.kind === "full") {
      undo?.();
      this.#isFull = true;
    }
    if (applied.kind !== "done") return false;
    if (applied.frees) await this.#reoffer();
    return this.#mail.finish(message, isReoffered); // A3
  }

  /** Applies what is not a message. Set aside means: it stays in the record, and is tried again when that is loaded again. */
  async #applyLocal(message: StepMessage): Promise<boolean> {
    const applied = await this.#stepper.apply(message);
    if (applied.kind === "aside") this.#host.report(this.key, { kind: "parked", why: applied.why });
    if (applied.kind === "done" && message.kind === "settled") this.#host.resolved(this.key, "ambiguous");
    this.#isFull = applied.kind === "full";
    return applied.kind === "done" || applied.kind === "aside";
  }

  async #mark(childId: string, attempt: number): Promise<boolean> {
    const isStored = await storeMark(this.#stores, childId, attempt);
    if (!isStored) this.#forget();
    return isStored;
  }

  #scheduleClean(): void {
    if (this.#host.signal.aborted || this.#dispatcher.size > 0 || (this.#holder.record?.outbox.length ?? 0) === 0)
      return;
    this.#cancelClean?.();
    this.#cancelClean = this.#services.clock.schedule(this.#services.settings.idleCleanMs, () =>
      this.#enqueue({ kind: "clean" }),
    );
  }

  #dispatched(): void {
    if (!this.#mailbox.isEmpty) this.#wake();
    else if (this.#dispatcher.size === 0 && !this.#isRunning) this.#scheduleClean();
    if (this.#dispatcher.size === 0) void this.#services.crashPoints.reach("after-dispatch", this.key);
  }

  #forget(): void {
    this.#holder.forget();
    this.#children.stop();
    this.#dispatcher.reset();
  }

  /** Puts what was set aside in front of everything that waits, and of `item`. @returns false when there was nothing */
  async #reoffer(item?: MailboxItem): Promise<boolean> {
    if (!this.#host.hasParked(this.key)) return false;
    const parked = await this.#mail.takeParked();
    this.#stepper.forgetGap();
    if (item !== undefined) this.#mailbox.putBack(item);
    this.#mailbox.putFront(parked.map((message) => ({ kind: "message", message, isReoffered: true })));
    return true;
  }
}
