// The last part of every step: from what the machine decided to the record that says so.
//   F1 one journal entry  every revision has exactly one, the last of its effects
//   F2 carry-over         effects not acknowledged yet stay in front of the new ones, unchanged in id and order
//   F3 untouched          the record handed in is not changed; parts that did not change are shared, never written to
import {
  formatStamp,
  isTerminal,
  type ActorRecord,
  type ChildEntry,
  type Effect,
  type EffectOf,
  type PlainEvent,
  type RecordStatus,
  type StoredSnapshot,
} from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import { planChildren, type ChildPlan, type Ending } from "./child-plan.ts";
import type { CompiledMachine } from "./compile.ts";
import { EffectWriter } from "./effect-writer.ts";
import type { LiveSnapshot } from "./engine.ts";
import { keep, withInputsOutside } from "./kept-outside.ts";
import { markFormerChildren, OutgoingLinks } from "./links.ts";
import { doneActorEvent, errorActorEvent, snapshotType } from "./reserved-events.ts";
import type { Decision, Spawned } from "./step-scope.ts";
import type { StepEnv, StepResult } from "./step-types.ts";
import { timerChanges, TimerTable } from "./timers.ts";

type Journal = EffectOf<"journal">;
/** Where the message of a macrostep came from, as far as the record before it cannot say it. */
export type Origin = Pick<Journal, "principal" | "parent" | "sender" | "host" | "passedOver" | "ran">;

/** What one macrostep came to, before it is a record. */
export interface Macrostep {
  readonly compiled: CompiledMachine;
  readonly env: StepEnv;
  /** The record so far; what the message itself changed (marks, remembered ids, settled child, fired timer) is already in it. */
  readonly record: ActorRecord;
  readonly cause: Journal["cause"];
  /** What was applied. */
  readonly event: PlainEvent;
  readonly origin?: Origin;
  /** Live form of the record's snapshot, if there is one. */
  readonly previous?: LiveSnapshot | undefined;
  /** Undefined when the machine was not asked. */
  readonly next?: LiveSnapshot | undefined;
  readonly decisions: readonly Decision[];
  readonly spawned: readonly Spawned[];
  /** State value before; undefined at the start. */
  readonly from: unknown;
  readonly stopped?: boolean;
  /** What the machine threw, when it did. */
  readonly thrown?: unknown;
}

export function finishStep(macrostep: Macrostep): Extract<StepResult, { kind: "stepped" }> {
  const { compiled, env, record, next, decisions } = macrostep;
  const spawned = withInputsOutside(macrostep.spawned, env.outside);
  const before = record.snapshot.children;
  const ending = endingOf(macrostep);
  const leftByXState = next?.children ?? {};
  const plan = planChildren({ compiled, before, spawned, decisions, ending, leftByXState });
  const status = statusAfter(ending, plan, record.status);
  const snapshot = snapshotAfter(macrostep, plan);
  const links = new OutgoingLinks(record.linksOut);
  const timers = new TimerTable(record.timers);
  const rev = record.rev + 1;
  const writer = new EffectWriter({
    compiled,
    record,
    rev,
    nowMs: env.nowMs,
    surroundings: { record, before, spawned },
    plan,
    links,
    timers,
    outside: env.outside,
    context: snapshot.context,
  });

  for (const child of plan.starting) writer.start(child);
  for (const decision of decisions) writer.write(decision);
  for (const child of plan.killed) writer.stop(child);
  if (ending !== "none") timers.cancelAll();
  const settled = report(macrostep, status, snapshot, writer);
  if (isTerminal(status)) writer.closeLinks();
  writer.journal({
    event: macrostep.event,
    cause: macrostep.cause,
    from: macrostep.from,
    to: snapshot.value,
    status,
    ...macrostep.origin,
    ...(plan.starting.length === 0
      ? {}
      : { starts: plan.starting.map(({ id, key, src }) => ({ childId: id, key, src })) }),
    ...(env.writer === undefined ? {} : { writer: env.writer }),
  }); // F1

  links.forget(plan.removed.map(({ key }) => key));
  const carried = carry(macrostep, env.carriedOutbox ?? record.outbox, snapshot.context);
  const stepped: ActorRecord = {
    ...record,
    machine: compiled.stamp,
    rev,
    status,
    snapshot,
    timers: timers.entries,
    outbox: [...carried, ...writer.effects], // F2
    linksOut: isTerminal(status) ? {} : links.counters,
    marks: isTerminal(status) ? {} : marksAfter(record, plan),
    directory: plan.entries === before ? record.directory : directoryOf(plan.entries),
    ...(settled === undefined ? {} : { settled }),
  };
  if (snapshot.status === "active") keepLive(macrostep, snapshot, plan);
  const local = [...writer.local, ...timerChanges(record.timers, timers.entries)];
  return { kind: "stepped", record: stepped, local, ...("thrown" in macrostep && { thrown: macrostep.thrown }) };
}

function endingOf({ next, record, stopped }: Macrostep): Ending {
  if (stopped === true) return "stopped";
  if (next === undefined) return record.status === "closing" ? "final" : "none";
  switch (next.status) {
    case "active":
      return "none";
    case "done":
      return "final";
    case "error":
      return "failed";
    case "stopped":
      return "stopped";
  }
}

function statusAfter(ending: Ending, { entries }: ChildPlan, before: RecordStatus): RecordStatus {
  switch (ending) {
    case "none":
      return isTerminal(before) ? before : "active";
    case "final":
      return Object.keys(entries).length > 0 ? "closing" : "done";
    case "failed":
      return "error";
    case "stopped":
      return "stopped";
  }
}

function snapshotAfter({ record, next, previous, stopped, env }: Macrostep, plan: ChildPlan): StoredSnapshot {
  const stored = record.snapshot;
  if (next === undefined) {
    const status = stopped === true ? "stopped" : stored.status;
    if (status === stored.status && plan.entries === stored.children) return stored;
    return { ...stored, status, children: plan.entries };
  }
  if (next === previous && plan.entries === stored.children) return stored;
  const { status, value, context, output, error, historyValue } = next;
  const { rest, blobs } = keep(status === "done" ? { output } : status === "error" ? { error } : {}, env.outside);
  return {
    status,
    value,
    context,
    ...rest,
    ...(blobs === undefined ? {} : { blobs }),
    historyValue: historyValue === previous?.historyValue ? stored.historyValue : idsOf(historyValue),
    children: plan.entries,
  };
}

const idsOf = (history: LiveSnapshot["historyValue"]): Record<string, string[]> =>
  Object.fromEntries(Object.entries(history).map(([node, states]) => [node, states.map(({ id }) => id)]));

/** Tells the parent: the new snapshot of a synchronised child, or the outcome. */
function report(
  { record, next }: Macrostep,
  status: RecordStatus,
  snapshot: StoredSnapshot,
  writer: EffectWriter,
): Effect | undefined {
  const { parent } = record;
  if (parent === undefined || isTerminal(record.status)) return undefined; // told long ago
  const { childId } = parent;
  if (status === "active" && parent.sync && next !== undefined) {
    const { key, genesis } = parent;
    const { value, context } = snapshot;
    const shown = { status: snapshot.status, value, context };
    writer.sendTo(
      { kind: "actor", key, genesis, relation: "parent" },
      { type: snapshotType(childId), snapshot: shown },
    );
  }
  const { output, error, blobs } = snapshot;
  if (status === "done") return writer.settled(doneActorEvent(childId, output), blobs);
  if (status === "error") return writer.settled(errorActorEvent(childId, error), blobs);
  return undefined;
}

/**
 * F2. An action runs with the context of its own transition, a journal entry names the machine that decided it. As long as these are what
 * the record has they are not stored twice; when they are about to be replaced while the effect still waits, they go into it.
 */
function carry({ compiled, record }: Macrostep, carried: readonly Effect[], next: unknown): readonly Effect[] {
  const { context } = record.snapshot;
  const machine = formatStamp(record.machine);
  const isSameMachine = machine === formatStamp(compiled.stamp);
  if (context === next && isSameMachine) return carried;
  return carried.map((effect) => {
    if (effect.kind === "journal") return isSameMachine || "machine" in effect ? effect : { ...effect, machine };
    if (effect.kind !== "action" || "context" in effect || context === next) return effect;
    const kept: Effect = { ...effect, context };
    const memory = compiled.actionMemory.get(effect);
    if (memory !== undefined) compiled.actionMemory.set(kept, memory);
    return kept;
  });
}

function marksAfter({ marks }: ActorRecord, { removed }: ChildPlan): Record<string, number> {
  const former = removed.filter(({ kind }) => kind === "actor");
  return former.length === 0 ? marks : markFormerChildren(marks, former);
}

function directoryOf(entries: Readonly<Record<string, ChildEntry>>): Record<string, string> {
  const directory: Record<string, string> = {};
  for (const { systemId, key, status } of Object.values(entries)) {
    if (systemId !== undefined && status === "active") directory[systemId] = key;
  }
  return directory;
}

/** Lets the next step of this very record go on without restoring it. */
function keepLive({ compiled, previous, next, spawned }: Macrostep, snapshot: StoredSnapshot, plan: ChildPlan): void {
  const basis = next ?? previous;
  if (basis === undefined || compiled.live.has(snapshot)) return;
  const sameChildren = basis.children === previous?.children;
  compiled.live.set(
    snapshot,
    sameChildren ? basis : { ...basis, children: addresses(plan.entries, previous, spawned) },
  );
}

/** Addresses of the children, the same objects as far as there are any: user code compares them. */
function addresses(
  entries: Readonly<Record<string, ChildEntry>>,
  previous: LiveSnapshot | undefined,
  spawned: readonly Spawned[],
): Record<string, ActorAddress> {
  const found: Record<string, ActorAddress> = {};
  for (const [id, { key }] of Object.entries(entries)) {
    const known = previous?.children[id];
    const fresh = spawned.findLast((child) => child.id === id && child.key === key)?.ref;
    found[id] =
      fresh instanceof ActorAddress
        ? fresh
        : known !== undefined && known.key === key
          ? known
          : new ActorAddress(key, id);
  }
  return found;
}
