import { dropReasonOf, step, type DropReason, type StartMessage, type StepMessage } from "@holdfast/durable";
import { RuntimeFault, toPlainFault, type ActorRecord, type BlobFields, type MessageOutcome } from "@holdfast/protocol";
import { withPayload } from "./blobs/message-payload.ts";
import type { CellChildren } from "./cell-children.ts";
import type { CellHost } from "./cell-host.ts";
import { errorEvent } from "./cell-items.ts";
import type { CellMail } from "./cell-mail.ts";
import { tryStep, type CellStores } from "./cell-stores.ts";
import { outcomeOfDropped, outcomeOfIgnored } from "./message-reading.ts";

/**
 * `done`: nothing more to do; `frees`: what was set aside may be applied now. `again`: on a fresh copy. `aside`: not now, and why; `expected`:
 * counter of the message that is missing before it.
 * `full`: when something of what was decided before has left. `unstorable`: never, and why; nobody was told yet.
 */
export type Applied =
  | { readonly kind: "done"; readonly frees: boolean }
  | { readonly kind: "again" | "full" }
  | { readonly kind: "aside"; readonly why: string; readonly expected?: number | undefined }
  | { readonly kind: "unstorable"; readonly fault: RuntimeFault };

type Tell = (outcome: MessageOutcome) => void;

export interface CellStepperOptions {
  readonly key: string;
  readonly host: CellHost;
  readonly stores: CellStores;
  readonly children: CellChildren;
  readonly mail: CellMail;
}

/** What the machine threw is user code's own: its first line says enough, its stack stays here. */
function machineThrew(key: string, message: StepMessage, thrown: unknown): RuntimeFault {
  const what = message.kind === "event" || message.kind === "settled" ? message.event.type : message.kind;
  const [reason = ""] = toPlainFault(thrown, "HF-3101").message.split("\n");
  return new RuntimeFault(
    "HF-3101",
    `${key}: its machine threw at ${what}: ${reason}. Deploy a build that does not, then retry.`,
    { cause: thrown },
  );
}

/** I10: nothing waits for it any more. */
const LATE: ReadonlySet<string> = new Set<DropReason>(["terminal", "stale-child", "other-incarnation"]);

const DONE: Applied = { kind: "done", frees: false };
const AGAIN: Applied = { kind: "again" };

/**
 * Applies one message to one actor: step, commit, then hand over what was decided.
 *
 * Owns: whether its links have a gap. Does not own: the mailbox, when to try again.
 *   S1 nothing is handed over before the commit that decided it (I1)
 *   S2 what can never be stored leaves the actor unharmed, and whoever waits for it is told (F10, F28)
 *   S3 a message whose payload cannot be had is not applied (I13): a child ends in an error, everything else waits for a mended blob
 *   S4 a machine that throws leaves its actor as it was, unless the type wants it otherwise
 */
export class CellStepper {
  readonly #options: CellStepperOptions;
  #hasGap = false;

  constructor(options: CellStepperOptions) {
    this.#options = options;
  }

  /** Everything that had been set aside is on offer again. */
  forgetGap(): void {
    this.#hasGap = false;
  }

  /** Applies a message, with the fields of its payload that are kept outside. */
  take(message: StepMessage, blobs: BlobFields | undefined, tell: Tell): Promise<Applied> {
    return blobs === undefined ? this.apply(message, tell) : this.#takeWithBlobs(message, blobs, tell);
  }

  async #takeWithBlobs(message: StepMessage, blobs: BlobFields, tell: Tell): Promise<Applied> {
    const { services, holder, dispatcher } = this.#options.stores;
    // What is dropped anyway must not wait for a blob that may be gone by now.
    if (dropReasonOf(holder.record, message, holder.env(dispatcher.unacked)) !== undefined)
      return this.apply(message, tell);
    try {
      return this.apply(withPayload(message, await services.payloads.fetch(blobs)), tell);
    } catch (error) {
      if (error instanceof RuntimeFault && error.code === "HF-3007") return this.#withoutPayload(message, error, tell);
      throw error; // nobody answered: it is tried again
    }
  }

  /** @throws RuntimeFault HF-3101 when the machine threw (S4) */
  async apply(message: StepMessage, tell?: Tell): Promise<Applied> {
    const { key, host, stores, children } = this.#options;
    const { served, holder, dispatcher } = stores;
    const before = holder.record;
    const carried = dispatcher.unacked;
    const result = tryStep(() => step(holder.compiled, before, message, holder.env(carried)));
    switch (result.kind) {
      case "impossible":
        if (message.kind === "start") return this.#unborn(message, result.fault, tell);
        return { kind: "aside", why: `${result.fault.code} ${result.fault.message}` };
      case "dropped":
        if (result.reason === "gap") {
          this.#hasGap = true;
          const { expected } = result.gap ?? {};
          return { kind: "aside", why: "a message of its sender before it has not arrived", expected };
        }
        if (result.reason === "already-started" && before?.settled !== undefined) dispatcher.add([before.settled]);
        host.count(result.reason === "duplicate" ? "duplicates" : "dropped");
        if (LATE.has(result.reason)) host.count("late");
        tell?.(outcomeOfDropped(served.definition, message, result.reason, before));
        return DONE;
      case "ignored":
        tell?.(outcomeOfIgnored(served.definition, message, result.record));
        return DONE;
      case "stepped":
        break;
    }
    if ("thrown" in result && message.kind !== "start" && served.definition.onThrow !== "fail")
      throw machineThrew(key, message, result.thrown); // S4
    const { record, local } = result;
    const stored = await this.#tryCommit(record);
    if (stored instanceof RuntimeFault && stored.code === "HF-2004" && carried.length > 0) return { kind: "full" };
    if (stored instanceof RuntimeFault) return this.#unstorable(message, stored, tell);
    if (!stored) return AGAIN;
    // First of all: somebody waits for the answer, nobody waits for the journal.
    tell?.({ kind: "applied", rev: record.rev, status: record.status, value: record.snapshot.value });
    dispatcher.add(record.outbox.slice(carried.length)); // S1
    children.apply(local);
    const closesGap = this.#hasGap && message.kind === "event" && message.from !== undefined;
    return { kind: "done", frees: message.kind === "start" || closesGap };
  }

  async #tryCommit(record: ActorRecord): Promise<boolean | RuntimeFault> {
    try {
      return await this.#options.stores.holder.commit(record);
    } catch (error) {
      if (error instanceof RuntimeFault && (error.code === "HF-2004" || error.code === "HF-2001")) return error;
      throw error;
    }
  }

  /** S2. */
  async #unstorable(message: StepMessage, fault: RuntimeFault, tell: Tell | undefined): Promise<Applied> {
    const { key, host, stores } = this.#options;
    const { code, message: reason } = fault;
    stores.services.telemetry.error("message.unstorable", { key, cause: message.kind, code, reason });
    if (message.kind === "start") return this.#unborn(message, fault, tell);
    if (message.kind === "timer") return { kind: "aside", why: `${code} ${reason}` }; // it stays in the record
    if (message.kind !== "settled") return { kind: "unstorable", fault };
    host.count("dropped");
    if (message.event.type.startsWith("xstate.done."))
      return this.apply({ ...message, event: errorEvent(message.childId, fault) }, tell);
    return DONE;
  }

  /** S3. */
  #withoutPayload(message: StepMessage, fault: RuntimeFault, tell: Tell): Promise<Applied> | Applied {
    const { key, stores } = this.#options;
    const { code, message: reason } = fault;
    stores.services.telemetry.error("message.no-payload", { key, cause: message.kind, code, reason });
    if (message.kind === "start") return this.#unborn(message, fault, tell);
    if (message.kind === "settled") return this.apply({ ...message, event: errorEvent(message.childId, fault) }, tell);
    return { kind: "aside", why: `${code} ${reason}` };
  }

  /** F28: a start that no record can come of is told to whoever waits for it. */
  async #unborn({ parent }: StartMessage, fault: RuntimeFault, tell: Tell | undefined): Promise<Applied> {
    if (parent !== undefined && !(await this.#options.mail.startFailed(parent, fault))) return AGAIN;
    this.#options.host.count("dropped");
    tell?.({ kind: "refused", code: fault.code, reason: fault.message });
    return DONE;
  }
}
