import { MAX_FOREIGN_LINKS, type ActorRecord, type PlainEvent } from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import type { CompiledMachine } from "./compile.ts";
import { finishStep, type Macrostep, type Origin } from "./finish-step.ts";
import { childIdOf, judgeLink, markForeign, type Sender } from "./links.ts";
import { isPlainObject } from "./plain-object.ts";
import { digestOf, isRemembered, remember } from "./remembered-ids.ts";
import { isReserved, LINK_CLOSED_EVENT, RELAY_EVENT, snapshotType } from "./reserved-events.ts";
import { runTransition } from "./run-machine.ts";
import type { Decision } from "./step-scope.ts";
import { SYSTEM_KEY_PREFIX } from "./step-system.ts";
import type { DropReason, EventMessage, StepEnv, StepResult } from "./step-types.ts";

/** Applies an event to a record that is not terminal. */
export function applyEvent(
  compiled: CompiledMachine,
  record: ActorRecord,
  message: EventMessage,
  env: StepEnv,
): StepResult {
  const admission = admit(record, message, env);
  if (admission.kind !== "admitted") return admission;
  const { marked, use } = admission;
  const common = commonPart(compiled, marked, message, env);
  if (use.kind === "note") {
    const previous = compiled.live.get(record.snapshot);
    return finishStep({ ...common, previous, decisions: use.decisions, spawned: [] });
  }
  const run = runTransition(compiled, record, message.event, env);
  const isUnchanged = run.next === run.previous && run.decisions.length === 0 && run.spawned.length === 0;
  if (isUnchanged && message.from === undefined) return { kind: "ignored", record };
  return finishStep({ ...common, ...run });
}

/**
 * Counts a message as taken without showing it to the machine, and notes why. For a message whose macrostep cannot be stored: dropped
 * alone, the next one on its link would be a gap for ever.
 */
export function passOver(
  compiled: CompiledMachine,
  record: ActorRecord,
  message: EventMessage,
  env: StepEnv,
  reason: DropReason,
): StepResult {
  const admission = admit(record, message, env);
  if (admission.kind !== "admitted") return admission;
  const event: PlainEvent = { type: message.event.type }; // its content may be what is too large
  const value = { id: message.id, type: event.type, reason };
  const common = commonPart(compiled, admission.marked, { ...message, event }, env);
  return finishStep({
    ...common,
    origin: { ...common.origin, passedOver: reason },
    previous: compiled.live.get(record.snapshot),
    decisions: [{ kind: "log", label: "holdfast.passedOver", value }],
    spawned: [],
  });
}

function commonPart(
  compiled: CompiledMachine,
  record: ActorRecord,
  message: EventMessage,
  env: StepEnv,
): Pick<Macrostep, "compiled" | "env" | "record" | "cause" | "event" | "origin" | "from"> {
  const { id, event } = message;
  const cause = { kind: "event", id } as const;
  return { compiled, env, record, cause, event, origin: originOf(message), from: record.snapshot.value };
}

/** What the journal has to say of a sender so that the message can be admitted again. */
function originOf({ principal, external, from, fromHost }: EventMessage): Origin {
  const by = principal === undefined ? {} : { principal };
  if (external) return by;
  if (from !== undefined) return { ...by, sender: from };
  return fromHost === undefined ? by : { ...by, host: fromHost };
}

/** What is done with an admitted event: shown to the machine, or dealt with by the interpreter itself. */
type Use = { readonly kind: "machine" } | { readonly kind: "note"; readonly decisions: readonly Decision[] };
type Admission =
  | { readonly kind: "admitted"; readonly marked: ActorRecord; readonly use: Use }
  | Extract<StepResult, { kind: "dropped" }>;

const MACHINE: Use = { kind: "machine" };
const refusedBy = (reason: DropReason): Admission => ({ kind: "dropped", reason });

function admit(record: ActorRecord, message: EventMessage, env: StepEnv): Admission {
  if (message.toGenesis !== undefined && message.toGenesis !== record.genesis) return refusedBy("other-incarnation");
  if (record.status !== "active") return refusedBy("terminal"); // closing: its machine is final
  if (message.external) return admitById(record, message, env);
  if (message.from !== undefined) return admitLinked(record, message.event, message.from, env);
  if (message.fromHost !== undefined) return admitHosted(record, message.event, message.fromHost);
  return admitById(record, message, env);
}

/** From outside, or sent by hand in a custom action, which may run again. */
function admitById(record: ActorRecord, { id, event }: EventMessage, { textHash }: StepEnv): Admission {
  if (isReserved(event.type)) return refusedBy("reserved-event");
  const digest = digestOf(id, textHash);
  if (isRemembered(record.messageIds, digest)) return refusedBy("duplicate");
  return { kind: "admitted", marked: { ...record, messageIds: remember(record.messageIds, digest) }, use: MACHINE };
}

/** From another actor. What is admitted counts as taken, whatever the machine makes of it. */
function admitLinked(record: ActorRecord, event: PlainEvent, from: Sender, env: StepEnv): Admission {
  const verdict = judgeLink(record, from, env.hardLimits?.foreignLinks ?? MAX_FOREIGN_LINKS);
  if (verdict.kind === "dropped") return verdict;
  const { childId } = verdict;
  const use = isReserved(event.type) ? useOfReserved(record, event, childId) : MACHINE;
  if (use === undefined) return refusedBy("reserved-event");
  if (childId === undefined) {
    return { kind: "admitted", marked: { ...record, marks: markForeign(record, from, isClosing(event)) }, use };
  }
  return { kind: "admitted", marked: withChildMark(record, childId, from.n), use };
}

/** Why an event would be dropped whatever the machine makes of it. */
export function eventDropReason(record: ActorRecord, message: EventMessage, env: StepEnv): DropReason | undefined {
  const admission = admit(record, message, env);
  return admission.kind === "dropped" ? admission.reason : undefined;
}

const isClosing = (event: PlainEvent): boolean => event.type === LINK_CLOSED_EVENT;

/** @returns undefined for what no actor may send to another */
function useOfReserved(record: ActorRecord, event: PlainEvent, childId: string | undefined): Use | undefined {
  if (childId === undefined) return isClosing(event) ? { kind: "note", decisions: [] } : undefined;
  if (event.type === RELAY_EVENT) return { kind: "note", decisions: relayed(event) };
  if (event.type !== snapshotType(childId)) return undefined;
  const child = record.snapshot.children[childId];
  return child?.sync === true && child.status === "active" ? MACHINE : { kind: "note", decisions: [] };
}

/** A child asks for the owner of a systemId. */
function relayed({ systemId, event }: PlainEvent): readonly Decision[] {
  if (typeof systemId !== "string" || !isPlainObject(event)) return [];
  return [{ kind: "send", target: { to: new ActorAddress(SYSTEM_KEY_PREFIX + systemId, systemId) }, event }];
}

function withChildMark(record: ActorRecord, childId: string, n: number): ActorRecord {
  const { children } = record.snapshot;
  const child = children[childId];
  if (child === undefined) return record;
  return { ...record, snapshot: { ...record.snapshot, children: { ...children, [childId]: { ...child, mark: n } } } };
}

/** From a volatile host: no counter, so nothing to store unless the machine does something. */
function admitHosted(record: ActorRecord, event: PlainEvent, fromHost: string): Admission {
  const childId = childIdOf(record, fromHost);
  const child = childId === undefined ? undefined : record.snapshot.children[childId];
  if (childId === undefined || child === undefined || child.kind === "actor" || child.status !== "active") {
    return refusedBy("stale-child");
  }
  const isOwnSnapshot = child.sync === true && event.type === snapshotType(childId);
  if (isReserved(event.type) && !isOwnSnapshot) return refusedBy("reserved-event");
  return { kind: "admitted", marked: record, use: MACHINE };
}
