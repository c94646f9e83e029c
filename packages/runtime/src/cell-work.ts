import { localEffectsOf, type StepMessage } from "@holdfast/durable";
import { RuntimeFault, type ResendRequest } from "@holdfast/protocol";
import { localStepOf } from "./cell-items.ts";
import type { CellParts } from "./cell-parts.ts";
import type { Applied } from "./cell-stepper.ts";
import { clearOutbox, fitToMachine, passOverMessage } from "./cell-stores.ts";
import { holdCutOff } from "./holds/hold-cut-off.ts";
import { MissingMessages } from "./link-gaps/missing-messages.ts";
import { resendMissing, resendRequestOf } from "./link-gaps/resend-missing.ts";
import { endWait, type MailboxItem } from "./mailbox.ts";
import { refusalOfOutside, type ReadMessage } from "./message-reading.ts";
import type { InboxMessage } from "./ports/index.ts";
import { skipMessage, type SkipParts } from "./quarantine/skip-message.ts";
import { takeWithoutRecord } from "./quarantine/take-without-record.ts";
import { judgeStart, keepOut } from "./retention/judge-start.ts";

/**
 * What one actor does about one item: load, take, step, commit.
 *
 * Owns: whether the outbox is too full for the next step. Does not own: the order of items, when to try again (ActorCell).
 *   A2 any outcome but `committed` drops the decoded copy (F52); what is loaded is rehydrated before it is stepped (I14)
 *   A3 a message counts as considered only after its commit, or when nothing is to be stored for it (C1)
 *   A4 what cannot be read here parks the messages, never the partition (F10)
 */
export class CellWork {
  readonly #parts: CellParts;
  readonly #skipParts: SkipParts;
  readonly #missing: MissingMessages;
  /** The next step does not fit into a record together with what has not left yet. */
  #isFull = false;

  constructor(parts: CellParts) {
    this.#parts = parts;
    this.#missing = new MissingMessages(parts);
    this.#skipParts = { ...parts, place: parts, reoffer: () => this.#reoffer() };
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** F26: nothing more is taken until something has left. */
  isOverfull(): boolean {
    const { holder, dispatcher } = this.#parts.stores;
    const isOverfull = holder.isOverfull(dispatcher, this.#isFull);
    if (!isOverfull) this.#isFull = false;
    return isOverfull;
  }

  /** A2. */
  forget(): void {
    const { stores, children } = this.#parts;
    stores.holder.forget();
    children.stop();
    stores.dispatcher.reset();
  }

  /** @returns false when the item must be tried again on a fresh copy */
  async process(item: MailboxItem): Promise<boolean> {
    const { host, key, mailbox, stores, children } = this.#parts;
    if (host.signal.aborted) {
      mailbox.putBack(item);
      return true;
    }
    if (item.kind === "reoffer") {
      await this.#offerNext();
      return true;
    }
    if (item.kind === "rehydrate" && item.isAnew) this.forget();
    if (stores.holder.record === undefined) {
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
        item.ready(await children.prepare(item.turn));
        return true;
      case "ensureJobs":
        if (mailbox.hasOverflow) host.recheckLater(key);
        else await this.#ensureJobs();
        return true;
      case "rehydrate":
        await this.#reoffer(); // also what was set aside since it was loaded
        item.done();
        return true;
      case "clean":
        return !mailbox.isEmpty || clearOutbox(stores);
    }
  }

  async #ensureJobs(): Promise<void> {
    const { host, key, children } = this.#parts;
    const verdict = host.cutOff === undefined ? "free" : await holdCutOff(this.#parts, children);
    if (verdict === "free") children.ensureJobs();
    else if (verdict === "held") this.forget(); // what is loaded from now on finds that it is held
    else host.recheckLater(key);
  }

  /** @returns false when there is nothing here to step: absent, unreadable, or no longer ours */
  async #load(): Promise<boolean> {
    const { host, quarantine, stores, children, mailbox } = this.#parts;
    const { holder, dispatcher } = stores;
    const isLoaded = (await holder.load()) === "loaded" && (await fitToMachine(stores));
    await quarantine.looked(holder.fault, isLoaded);
    if (!isLoaded) return false;
    const current = holder.record;
    if (current === undefined) return false;
    host.count("restored");
    if (current.outbox.length > 0) host.count("resent");
    dispatcher.add(current.outbox);
    children.apply(localEffectsOf(current).filter((effect) => effect.kind !== "startJob"));
    mailbox.push({ kind: "ensureJobs" }); // behind the messages that wait: one of them may be an outcome (K3)
    return true;
  }

  /** What happens to an item whose actor has no readable record here. */
  async #withoutRecord(item: MailboxItem): Promise<boolean> {
    const { host, stores } = this.#parts;
    const isOver = host.signal.aborted;
    if (!isOver && stores.holder.record !== undefined) return false; // its repair for this build is not stored yet
    const { unreadable } = stores.holder;
    if (item.kind === "rehydrate" && !isOver && unreadable === undefined) await this.#reoffer(); // a start may be among them
    endWait(item);
    if (isOver || item.kind !== "message") return true;
    return takeWithoutRecord(this.#skipParts, item, () => this.#take(item.message, item.isReoffered));
  }

  async #take(message: InboxMessage, isReoffered: boolean): Promise<boolean> {
    const { services, served, mail, quarantine, stepper, stores } = this.#parts;
    const { holder } = stores;
    if (!isReoffered && holder.wasConsidered(message)) return mail.finish(message, false);
    if (quarantine.takeSkip(message)) return skipMessage(this.#skipParts, message, isReoffered);
    const read = mail.read(message);
    if (read instanceof RuntimeFault) return quarantine.unreadableMessage(message, isReoffered, read);
    const undo = isReoffered ? undefined : holder.consider(message);
    const request = resendRequestOf(read.step);
    if (request !== undefined) return this.#resend(message, isReoffered, read.step, request);
    const verdict = await judgeStart(services, holder.record, message.key, read);
    if (verdict !== "wanted") return keepOut(mail, message, isReoffered, verdict);
    const refusal = message.principal === undefined ? undefined : refusalOfOutside(served.definition, read);
    if (refusal !== undefined) return mail.refuse(message, isReoffered, read, refusal);
    const applied = await stepper.take(read.step, read.blobs, (outcome) => mail.reply(read, outcome));
    if (applied.kind === "aside") return this.#setAside(message, isReoffered, read, applied);
    if (applied.kind === "unstorable") return this.#passOver(message, isReoffered, read, applied.fault);
    if (applied.kind === "full") {
      undo?.();
      this.#isFull = true;
    }
    if (applied.kind !== "done") return false;
    if (applied.frees) await this.#reoffer();
    return mail.finish(message, isReoffered); // A3
  }

  async #setAside(
    message: InboxMessage,
    isReoffered: boolean,
    { step }: ReadMessage,
    { why, expected }: Extract<Applied, { kind: "aside" }>,
  ): Promise<boolean> {
    const { host, key, mail, stores } = this.#parts;
    if (!(await mail.park(message, isReoffered, why))) return false;
    const { record } = stores.holder;
    if (expected === undefined || record === undefined || step.kind !== "event" || step.from === undefined) return true;
    host.waits(key, await this.#missing.ask({ message, from: step.from, expected }, isReoffered, record)); // F3
    return true;
  }

  /** Another actor asks for messages of this one that it has missed (F3). */
  async #resend(
    message: InboxMessage,
    isReoffered: boolean,
    step: StepMessage,
    request: ResendRequest | "unreadable",
  ): Promise<boolean> {
    const genesis = step.kind === "event" ? step.toGenesis : undefined;
    if (request !== "unreadable" && !(await resendMissing(this.#parts, request, genesis))) return false;
    return this.#parts.mail.finish(message, isReoffered);
  }

  /** A message whose effect can never be stored: its bytes are kept, its link goes on without it, its sender is told (F10). */
  async #passOver(
    message: InboxMessage,
    isReoffered: boolean,
    read: ReadMessage,
    fault: RuntimeFault,
  ): Promise<boolean> {
    const { quarantine, mail, stores, host } = this.#parts;
    if (!(await quarantine.keep(message, fault))) return false;
    const { step } = read;
    if (step.kind === "event" && step.from !== undefined && !(await passOverMessage(stores, step))) return false;
    mail.reply(read, { kind: "refused", code: fault.code, reason: fault.message });
    host.count("dropped");
    return mail.finish(message, isReoffered, false);
  }

  /** Applies what is not a message. Set aside means: it stays in the record, and is tried again when that is loaded again. */
  async #applyLocal(message: StepMessage): Promise<boolean> {
    const { host, key, stepper } = this.#parts;
    const applied = await stepper.apply(message);
    if (applied.kind === "aside") host.report(key, { kind: "parked", why: applied.why });
    if (applied.kind === "done" && message.kind === "settled") host.resolved(key, "ambiguous");
    this.#isFull = applied.kind === "full";
    if (applied.kind === "unstorable") host.count("dropped");
    return applied.kind === "done" || applied.kind === "aside" || applied.kind === "unstorable";
  }

  /**
   * Offers again what was set aside, in front of everything that waits, and of `item`.
   * @returns false when there was nothing, or it follows anyway: `item` is to be dealt with now
   */
  async #reoffer(item?: MailboxItem): Promise<boolean> {
    const { host, key, mail, stepper } = this.#parts;
    if (!host.hasParked(key)) return false;
    stepper.forgetGap();
    if (!mail.parked.isUnderWay) return this.#offerNext(item);
    mail.parked.lengthen();
    return false;
  }

  async #offerNext(item?: MailboxItem): Promise<boolean> {
    const { mail, mailbox } = this.#parts;
    const page = await mail.parked.next();
    if (page === undefined) return false;
    if (item !== undefined) mailbox.putBack(item);
    const messages = page.map((message) => ({ kind: "message", message, isReoffered: true }) as const);
    mailbox.putFront([...messages, { kind: "reoffer" }]);
    return true;
  }
}
