import { fits, passOver, reconcile, type StepMessage, type StepResult } from "@holdfast/durable";
import { isTerminal, RuntimeFault, toPlainFault, type ActorRecord } from "@holdfast/protocol";
import type { NodeServices, ServedType } from "./cell-host.ts";
import type { OutboxDispatcher } from "./outbox-dispatcher.ts";
import type { RecordHolder } from "./record-holder.ts";
import { machineToRestore } from "./write-switch.ts";

/** What a commit of one actor touches. */
export interface CellStores {
  readonly services: NodeServices;
  readonly served: ServedType;
  readonly holder: RecordHolder;
  readonly dispatcher: OutboxDispatcher;
}

/**
 * Stores that a message was taken although its effect cannot be: the next one of its link would be a gap for ever.
 * @returns false when that could not be stored either
 */
export async function passOverMessage(
  { holder, dispatcher }: CellStores,
  message: Extract<StepMessage, { kind: "event" }>,
  reason: "record-too-large" | "skipped" = "record-too-large",
): Promise<boolean> {
  const before = holder.record;
  if (before === undefined) return false;
  const carried = dispatcher.unacked;
  const result = passOver(holder.compiled, before, message, holder.env(carried), reason);
  if (result.kind !== "stepped") return true;
  if (!(await holder.commit(result.record))) return false;
  dispatcher.add(result.record.outbox.slice(carried.length));
  return true;
}

/** A step, or the reason why there can be none on this node however often it is tried: a machine that does not fit, a pool that is not there. */
export function tryStep<T>(take: () => T): T | { readonly kind: "impossible"; readonly fault: RuntimeFault } {
  try {
    return take();
  } catch (error) {
    if (error instanceof RuntimeFault) return { kind: "impossible", fault: error };
    throw error;
  }
}

/**
 * Stores that attempt n of a job is about to start: a commit without a macrostep, same revision, same outbox.
 * @returns false when it could not be stored, or the job is no longer wanted
 */
export async function storeMark(
  { services, holder, dispatcher }: CellStores,
  childId: string,
  attempt: number,
): Promise<boolean> {
  const record = holder.record;
  const entry = record?.snapshot.children[childId];
  if (record === undefined || entry === undefined || entry.status !== "active") return false;
  const marked = { ...entry, attempt, runner: services.incarnation };
  const children = { ...record.snapshot.children, [childId]: marked };
  return holder.commit({ ...record, outbox: [...dispatcher.unacked], snapshot: { ...record.snapshot, children } });
}

/** Clears an acknowledged outbox, so that a sleeper costs nothing at a takeover. @returns false when it could not be stored */
export async function clearOutbox({ holder, dispatcher }: CellStores): Promise<boolean> {
  const record = holder.record;
  if (record === undefined || record.outbox.length === 0 || dispatcher.size > 0) return true;
  return holder.commit({ ...record, outbox: [] });
}

/**
 * Repairs a loaded record for the machine this build has, when another one wrote it.
 * @returns false when it does not fit (the actor is parked), or the repair could not be stored
 */
export async function fitToMachine({ services, served, holder }: CellStores): Promise<boolean> {
  const { record } = holder;
  if (record === undefined) return false;
  const compiled = machineToRestore(served, record, services.writeSwitch.machineOf(served));
  if (record.machine.hash === compiled.stamp.hash || isTerminal(record.status)) return true;
  if (!fits(compiled, record)) {
    holder.park(
      `its state does not exist in ${compiled.stamp.id}@${compiled.stamp.version} of this build. Deploy the build that wrote it, or a migration.`,
    );
    return false;
  }
  let repaired: StepResult;
  try {
    repaired = reconcile(compiled, record, holder.env(record.outbox));
  } catch (error) {
    // Delays and inputs of the new machine are user code that meets a context it may not know.
    const { message } = toPlainFault(error, "HF-2005");
    holder.park(`${compiled.stamp.id}@${compiled.stamp.version} of this build cannot take it over: ${message}`);
    return false;
  }
  return repaired.kind !== "stepped" || holder.commit(repaired.record);
}

/** Nothing of this record runs in this process: only timers, children of their own, or messages can wake it. */
export function isAtRest(record: ActorRecord): boolean {
  const children = Object.values(record.snapshot.children);
  return record.outbox.length === 0 && !children.some((child) => child.kind !== "actor" && child.status === "active");
}
