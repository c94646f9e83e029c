import { localEffectsOf, type StepMessage } from "@holdfast/durable";
import { toPlainFault, type ActorRecord, type Effect } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import { CellChildren } from "./cell-children.ts";
import type { CellHost, NodeServices, ServedType } from "./cell-host.ts";
import { ambiguousItem, failedItem, hostEvent, hostItem, undeliverableItem } from "./cell-items.ts";
import { CellMail } from "./cell-mail.ts";
import { createSender } from "./cell-sending.ts";
import { CellStepper } from "./cell-stepper.ts";
import { clearOutbox, fitToMachine, isAtRest, storeMark, type CellStores } from "./cell-stores.ts";
import { Mailbox, type MailboxItem } from "./mailbox.ts";
import { outcomeOfDrop, refusalOfOutside } from "./message-reading.ts";
import { OutboxDispatcher } from "./outbox-dispatcher.ts";
import type { InboxMessage, StoredValue } from "./ports/index.ts";
import { RecordHolder } from "./record-holder.ts";

/**
 * One actor on the node that owns its partition: take, load, step, commit, dispatch, strictly in order.
 *
 * Owns: its mailbox, the decoded record, its outbox. Does not own: the lease (partition), the jobs (job table).
 *   A1 nothing leaves before the commit that decided it (I1)
 *   A2 any outcome but `committed` drops the decoded copy (F52); what is loaded is rehydrated before it is stepped (I14)
 *   A3 a message counts as considered only after its commit, or when nothing is to be stored for it (C1)
 *   A4 what cannot be read here parks the messages, never the partition (F10)
 */
export class ActorCell {
  readonly key: string;
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
    this.#mailbox = new Mailbox(key, services.log);
    this.#mail = new CellMail(key, services, host);
    const record = (): ActorRecord | undefined => this.#holder.record;
    this.#dispatcher = new OutboxDispatcher({
      send: createSender(services, served, record, host.signal, (effect, reason) =>
        this.#undeliverable(effect, reason),
      ),
      pause: (ms) => pause(services.clock, ms, host.signal),
      acked: () => this.#dispatched(),
      linger: (flush) => services.journalLinger.wait(flush),
      failing: (effect, reason, tries) => {
        if (tries !== 3) return;
        services.telemetry.warn("outbox.delayed", { key, effect: effect.id, kind: effect.kind, reason });
      },
    });
    this.#stores = { services, served, holder: this.#holder, dispatcher: this.#dispatcher };
    this.#children = new CellChildren({
      services,
      host,
      served,
      key,
      record,
      whenJournaled: (rev) => this.#dispatcher.whenJournaled(rev),
      mark: (childId, attempt) => new Promise((stored) => this.#enqueue({ kind: "mark", childId, attempt, stored })),
      fromHost: (childKey, event) => this.#enqueue(hostItem(childKey, event, record())),
      settleAmbiguous: (childId, entry) => {
        const current = record();
        if (current !== undefined) this.#enqueue(ambiguousItem(current, childId, entry));
      },
      settleFailed: (childId, entry, fault) => {
        const current = record();
        if (current !== undefined) this.#enqueue(failedItem(current, childId, entry.key, fault));
      },
    });
    this.#stepper = new CellStepper({
      key,
      host,
      stores: this.#stores,
      children: this.#children,
      mail: this.#mail,
    });
  }

  /** Hands in a message of the partition's stream. Never blocks. */
  deliver(message: InboxMessage): void {
    this.#mailbox.offer(message);
    this.#wake();
  }

  fireTimer(timer: string, gen: string): void {
    this.#enqueue({ kind: "timer", timer, gen });
  }

  /** Loads and rehydrates the actor; resolves when that is done (or found impossible). @param stored  its value, when it was read already */
  rehydrate(stored?: StoredValue): Promise<void> {
    if (stored !== undefined) this.#holder.prime(stored);
    return new Promise((done) => this.#enqueue({ kind: "rehydrate", done }));
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
    if (this.#isRunning || !this.#mailbox.isEmpty || this.#dispatcher.size > 0 || this.#children.isBusy) return false;
    if (nowMs - this.#idleSinceMs < this.#services.settings.passivateMs) return false;
    return this.#holder.record === undefined || isAtRest(this.#holder.record);
  }

  stop(): void {
    this.#dispatcher.stop();
    this.#children.stop();
    this.#cancelClean?.();
    if (!this.#isRunning) this.#giveUp();
  }

  /** Nobody may wait for ever for what this node will not do any more. */
  #giveUp(): void {
    for (let item = this.#mailbox.next(); item !== undefined; item = this.#mailbox.next()) {
      if (item.kind === "rehydrate") item.done();
      else if (item.kind === "mark") item.stored(false);
    }
  }

  #enqueue(item: MailboxItem): void {
    this.#mailbox.push(item);
    if (this.#host.signal.aborted && !this.#isRunning) this.#giveUp();
    else this.#wake();
  }

  #wake(): void {
    if (this.#isRunning || this.#host.signal.aborted) return;
    this.#isRunning = true;
    this.#cancelClean?.();
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    for (let backoffMs = 10; !this.#host.signal.aborted;) {
      if (this.#isOverfull()) break; // F26; `#dispatched` wakes it
      const item = this.#mailbox.next();
      if (item === undefined && !this.#mailbox.hasOverflow) break;
      try {
        const done = await (item === undefined ? this.#mailbox.refill() : this.#process(item));
        if (done) {
          backoffMs = 10;
          continue;
        }
      } catch (error) {
        const fault = toPlainFault(error, "HF-2001");
        this.#services.telemetry.error("actor.failed", { key: this.key, code: fault.code, reason: fault.message });
      }
      if (item !== undefined) {
        this.#mailbox.putBack(item);
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
    else this.#scheduleClean();
  }

  #isOverfull(): boolean {
    const isOverfull = this.#holder.isOverfull(this.#dispatcher, this.#isFull);
    if (!isOverfull) this.#isFull = false;
    return isOverfull;
  }

  /** @returns false when the item must be tried again on a fresh copy */
  async #process(item: MailboxItem): Promise<boolean> {
    if (this.#holder.record === undefined) {
      if (!(await this.#load())) return this.#withoutRecord(item);
      if (item.kind === "rehydrate") await this.#reoffer();
      else if (await this.#reoffer(item)) return true;
    }
    switch (item.kind) {
      case "message":
        return this.#take(item.message, item.isReoffered);
      case "timer":
        return this.#applyLocal({ kind: "timer", timer: item.timer, gen: item.gen });
      case "host":
        return this.#applyLocal(hostEvent(item.childKey, item.event));
      case "settled":
        return this.#applyLocal(item.step);
      case "mark":
        return this.#mark(item);
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
    if ((await this.#holder.load()) !== "loaded" || !(await fitToMachine(this.#stores))) return false;
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
    if (item.kind === "rehydrate") {
      if (!isOver && unreadable === undefined) await this.#reoffer(); // a start may be among them
      item.done();
    }
    if (item.kind === "mark") item.stored(false);
    if (isOver || item.kind !== "message") return true;
    const { message, isReoffered } = item;
    if (unreadable !== undefined) return this.#mail.park(message, isReoffered, unreadable); // A4
    const read = this.#mail.read(message);
    if (read === undefined) return this.#mail.park(message, isReoffered, "unreadable message");
    if (read.step.kind === "start") return this.#take(message, isReoffered);
    const isInside = message.principal === undefined && read.step.kind === "event";
    if (isInside) return this.#mail.park(message, isReoffered, "its start has not arrived"); // F17
    return this.#mail.refuse(message, isReoffered, read, outcomeOfDrop("not-started", undefined));
  }

  async #take(message: InboxMessage, isReoffered: boolean): Promise<boolean> {
    if (!isReoffered && this.#holder.wasConsidered(message)) return this.#mail.finish(message, false);
    const read = this.#mail.read(message);
    if (read === undefined) return this.#mail.park(message, isReoffered, "unreadable message");
    const undo = isReoffered ? undefined : this.#holder.consider(message);
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

  async #mark(item: Extract<MailboxItem, { kind: "mark" }>): Promise<boolean> {
    const isStored = await storeMark(this.#stores, item.childId, item.attempt);
    if (!isStored) this.#forget();
    item.stored(isStored);
    return true;
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

  async #undeliverable(effect: Effect, reason: string): Promise<void> {
    this.#services.telemetry.error("outbox.undeliverable", {
      key: this.key,
      effect: effect.id,
      kind: effect.kind,
      reason,
    });
    const item = undeliverableItem(this.#holder.record, effect, reason);
    if (item !== undefined) this.#enqueue(item);
  }
}
