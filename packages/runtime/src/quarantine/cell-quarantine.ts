import { principalToken, RuntimeFault, toPlainFault, type StuckAttempt, type StuckEntry } from "@holdfast/protocol";
import { blobsOfEnvelope } from "../blobs/named-blobs.ts";
import type { CellHost, NodeServices } from "../cell-host.ts";
import type { CellMail } from "../cell-mail.ts";
import { endWait, type MailboxItem } from "../mailbox.ts";
import { encodeParked } from "../parked-message.ts";
import type { InboxMessage } from "../ports/index.ts";
import type { RecordHolder } from "../record-holder.ts";
import { markOf } from "./quarantine.ts";

/**
 * What one actor cannot take, however often it is tried.
 *
 * Owns: how often what failed. Does not own: the entries (Quarantine), the mailbox.
 *   C1 what the broker or the network did is no attempt
 *   C2 after the last attempt a message is taken out with its bytes; anything else holds the actor
 */
export class CellQuarantine {
  readonly #key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;
  readonly #mail: CellMail;
  readonly #failed = new Map<string, StuckAttempt[]>();
  readonly #skips = new Set<string>();

  constructor(key: string, services: NodeServices, host: CellHost, mail: CellMail) {
    this.#key = key;
    this.#services = services;
    this.#host = host;
    this.#mail = mail;
  }

  /** An attempt failed. @returns true when that was the last one, and the item was dealt with (C2) */
  async failed(item: MailboxItem | undefined, error: unknown): Promise<boolean> {
    const { code, message: reason } = toPlainFault(error, "HF-2001");
    this.#services.telemetry.error("actor.failed", { key: this.#key, code, reason });
    if (item === undefined) return false;
    return this.#judge(item, error).catch(() => false); // telling it may fail, too
  }

  async #judge(item: MailboxItem, error: unknown): Promise<boolean> {
    if (this.#host.signal.aborted || !isItsOwnFault(error)) return false; // C1
    const { code, message } = toPlainFault(error, "HF-3101");
    const what = nameOf(item);
    const attempts = [...(this.#failed.get(what) ?? []), this.#services.quarantine.attempt(code, message)];
    this.#failed.set(what, attempts);
    if (attempts.length < this.#services.settings.maxAttempts) return false;
    const fault = new RuntimeFault(isKept(code) ? code : "HF-3101", message);
    const isDone =
      item.kind === "message"
        ? await this.takeOut(item.message, item.isReoffered, fault, attempts)
        : await this.#hold(item, fault, attempts);
    if (isDone) this.#failed.delete(what);
    return isDone;
  }

  /** Its nodes ended, one after the other, while it was tried alone. @returns false when it could not be set aside yet */
  condemn(item: MailboxItem, attempts: readonly StuckAttempt[]): Promise<boolean> {
    const fault = new RuntimeFault(
      "HF-3102",
      `${this.#key}: ${attempts.length} nodes ended while ${nameOf(item)} was tried alone. Deploy a build that survives it, then retry.`,
    );
    return item.kind === "message"
      ? this.takeOut(item.message, item.isReoffered, fault, attempts)
      : this.#hold(item, fault, attempts);
  }

  /** A message whose bytes are no envelope of this build. @returns false when it could not be set aside yet */
  unreadableMessage(message: InboxMessage, isReoffered: boolean, fault: RuntimeFault): Promise<boolean> {
    return fault.code === "HF-2003"
      ? this.#waitForBuild(message, isReoffered, fault)
      : this.takeOut(message, isReoffered, fault);
  }

  /** Takes a message out of the actor's way, with its bytes. @returns false when that could not be stored yet */
  async takeOut(
    message: InboxMessage,
    isReoffered: boolean,
    fault: RuntimeFault,
    attempts?: readonly StuckAttempt[],
  ): Promise<boolean> {
    return (await this.keep(message, fault, attempts)) && this.#mail.finish(message, isReoffered, false);
  }

  /** Keeps the bytes of a message that is to be taken out. @returns false when they could not be stored yet */
  async keep(
    message: InboxMessage,
    fault: RuntimeFault,
    attempts: readonly StuckAttempt[] = [this.#services.quarantine.attempt(fault.code, fault.message)],
  ): Promise<boolean> {
    const { quarantine, codec } = this.#services;
    if (message.principal !== undefined && quarantine.messagesOf(this.#key).length >= MAX_KEPT_FROM_OUTSIDE) {
      this.#services.telemetry.error("message.not-kept", { key: this.#key, seq: message.seq, code: fault.code });
      this.#host.count("dropped");
      return true;
    }
    const failure = { code: fault.code, reason: fault.message, state: "quarantined", attempts } as const;
    const copy = encodeParked(codec, message);
    if (!(await quarantine.setMessageAside(message, failure, copy, this.#originOf(message)))) return false;
    this.#host.count("quarantined");
    return true;
  }

  /** Sets a message aside that a newer build may read; it is offered again whenever the actor is loaded. */
  async #waitForBuild(message: InboxMessage, isReoffered: boolean, fault: RuntimeFault): Promise<boolean> {
    const { quarantine } = this.#services;
    const { code, message: reason } = fault;
    const known = quarantine.message(this.#key, markOf(message));
    if (known?.history.at(-1)?.node !== this.#services.incarnation) {
      const failure = { code, reason, state: "parked", attempts: [quarantine.attempt(code, reason)] } as const;
      if (!(await quarantine.setMessageAside(message, failure, undefined, this.#originOf(message)))) return false;
    }
    return this.#mail.park(message, isReoffered, `${code} ${reason}`);
  }

  /** The record was looked at: says durably when this build cannot use it, once per node and reason, and when it can after all. */
  async looked(found: RecordHolder["fault"], isLoaded: boolean): Promise<void> {
    const { quarantine, incarnation } = this.#services;
    const known = quarantine.actor(this.#key);
    if (isLoaded && known !== undefined && quarantine.heldBack(this.#key) === undefined)
      await quarantine.remove(this.#key);
    if (found === undefined) return;
    const { fault, seq, size } = found;
    const { code, message: reason } = fault;
    const last = known?.history.at(-1);
    if (last?.node === incarnation && last.code === code) return;
    const state = code === "HF-2002" ? "quarantined" : "parked";
    const failure = { code, reason, state, attempts: [quarantine.attempt(code, reason)] } as const;
    await quarantine.setActorAside(this.#key, failure, { seq, size });
  }

  /** The next time this message comes it is passed over. */
  skip(mark: string): void {
    this.#skips.add(mark);
  }

  /** It could not be passed over yet. @returns false */
  skipLater(message: InboxMessage): false {
    this.#skips.add(markOf(message));
    return false;
  }

  /** Whether a message is to be passed over; asked once. */
  takeSkip(message: InboxMessage): boolean {
    return this.#skips.size > 0 && this.#skips.delete(markOf(message));
  }

  /** @returns whether it still waited for its message */
  unskip(mark: string): boolean {
    return this.#skips.delete(mark);
  }

  #originOf(message: InboxMessage): Pick<StuckEntry, "principal" | "blobs"> {
    const { principal } = message;
    const read = this.#mail.read(message);
    const blobs = read instanceof RuntimeFault ? [] : blobsOfEnvelope(read.envelope);
    return {
      ...(principal !== undefined && { principal: principalToken(principal) }),
      ...(blobs.length > 0 && { blobs: [...blobs] }),
    };
  }

  async #hold(item: MailboxItem, fault: RuntimeFault, attempts: readonly StuckAttempt[]): Promise<boolean> {
    const { quarantine } = this.#services;
    const failure = { code: fault.code, reason: fault.message, state: "quarantined", attempts } as const;
    if (!(await quarantine.setActorAside(this.#key, failure))) return false;
    this.#host.count("quarantined");
    this.#host.report(this.#key, { kind: "quarantined", why: `${fault.code} ${fault.message}` });
    endWait(item);
    return true;
  }
}

/** Messages of an actor that are kept; beyond, what comes from outside is dropped: it could fill the bucket for everybody. */
const MAX_KEPT_FROM_OUTSIDE = 100;

/** Codes that say more than that something threw. */
const isKept = (code: string): code is "HF-2001" => code === "HF-2001";

/** C1. */
function isItsOwnFault(error: unknown): boolean {
  if (error instanceof RuntimeFault) return error.next !== "retry" && !error.code.startsWith("HF-4");
  return !(error instanceof DOMException && error.name === "AbortError");
}

/** What an actor does when it works an item off, as its attempts are counted by. */
export function nameOf(item: MailboxItem): string {
  switch (item.kind) {
    case "message":
      return `message ${markOf(item.message)}`;
    case "timer":
      return `timer ${item.timer}/${item.gen}`;
    case "host":
    case "settled":
    case "job":
    case "ensureJobs":
    case "rehydrate":
    case "clean":
    case "reoffer":
      return item.kind;
  }
}
