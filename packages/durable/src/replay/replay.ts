// Replay: the pure transitions of a journal again, from nothing to the record after its last entry.
//
// Owns: which entry cannot be, and why.  Does not own: reading the journal, judging the stored record (compare-with-stored.ts).
//   R1 by the same step   what runs is `step`, `passOver` and `reconcile`, nothing written for this purpose
//   R2 nothing else       clock, order and identities come from the entries; what the record already says is not asked of them
//   R3 every entry whole  each step's own journal entry must be the one that is stored, field by field
import {
  formatStamp,
  parseActorKey,
  RuntimeFault,
  type ActorRecord,
  type EffectOf,
  type JournalEntry,
  type PartitionScheme,
  type PlainEvent,
} from "@holdfast/protocol";
import { passOver } from "../apply-event.ts";
import type { CompiledMachine } from "../compile.ts";
import type { KeepOutside } from "../kept-outside.ts";
import { reconcile } from "../reconcile.ts";
import { step } from "../step.ts";
import type { DropReason, StepEnv, StepResult } from "../step-types.ts";
import { differences } from "./differences.ts";
import { journaledMessage } from "./journaled-message.ts";
import { orderJournal } from "./order-journal.ts";

export interface ReplayOptions {
  /** Every version of the actor's machine that is known. An entry is replayed by exactly the one that decided it. */
  readonly machines: readonly CompiledMachine[];
  /** Layout of the namespace: the keys of children depend on it. */
  readonly scheme: PartitionScheme;
  /** What nodes keep outside of a record, when they do. */
  readonly outside?: KeepOutside;
  /** The event of an entry with what of it is kept outside. Default: all of it is in the entry. */
  readonly eventOf?: (entry: JournalEntry) => PlainEvent;
}

export interface ReplayedStep {
  readonly entry: JournalEntry;
  /** As it was stored after this entry, but for what no journal knows: see `compareWithStored`. Its outbox is what this step decided. */
  readonly record: ActorRecord;
}

/** How a replay ended. Everything but `complete` names the entry that could not be replayed; the steps before it could. */
export type ReplayEnd =
  | { readonly kind: "complete" }
  /** The transition leads elsewhere than the entry says. Values are JSON; `undefined` is: nothing there. */
  | {
      readonly kind: "mismatch";
      readonly rev: number;
      readonly path: string;
      readonly expected: unknown;
      readonly found: unknown;
    }
  | { readonly kind: "gap"; readonly rev: number; readonly found: number }
  /** One revision was stored with two contents. */
  | {
      readonly kind: "contradiction";
      readonly rev: number;
      readonly path: string;
      readonly first: unknown;
      readonly second: unknown;
    }
  | {
      readonly kind: "unknown-machine";
      readonly rev: number;
      readonly wanted: string;
      readonly known: readonly string[];
    }
  /** The entry does not say enough, or nothing can be made of it here. */
  | { readonly kind: "unreplayable"; readonly rev: number; readonly why: string };

export interface Replay {
  readonly steps: readonly ReplayedStep[];
  readonly end: ReplayEnd;
  /** Entries that were stored again with the same content. */
  readonly repeated: number;
}

/**
 * Runs a journal again. Pure; whatever the entries are, it returns.
 * @param stored  entries of one actor in stored order; repeated ones and those of former incarnations may be among them
 */
export function replay(stored: readonly JournalEntry[], options: ReplayOptions): Replay {
  const { entries, repeated, contradiction } = orderJournal(stored);
  const steps: ReplayedStep[] = [];
  const ending = (end: ReplayEnd): Replay => ({ steps, end, repeated });
  for (const entry of entries) {
    const { rev } = entry;
    if (rev !== steps.length + 1) return ending({ kind: "gap", rev: steps.length + 1, found: rev });
    if (contradiction?.rev === rev) {
      const { path, before: first, after: second } = contradiction.difference;
      return ending({ kind: "contradiction", rev, path, first, second });
    }
    const taken = take(entry, steps.at(-1)?.record, options);
    if (!("record" in taken)) return ending(taken);
    steps.push({ entry, record: taken.record });
  }
  return ending({ kind: "complete" });
}

type Taken = { readonly record: ActorRecord } | Exclude<ReplayEnd, { readonly kind: "complete" }>;

function take(entry: JournalEntry, before: ActorRecord | undefined, options: ReplayOptions): Taken {
  const { machines, scheme, outside, eventOf } = options;
  const { rev } = entry;
  const { type } = parseActorKey(entry.key);
  const known = machines.filter((machine) => machine.type === type);
  const compiled = known.find(({ stamp }) => formatStamp(stamp) === entry.machine);
  if (compiled === undefined) {
    const stamps = known.map(({ stamp }) => formatStamp(stamp));
    return { kind: "unknown-machine", rev, wanted: entry.machine, known: stamps };
  }
  const whole = eventOf === undefined ? entry : { ...entry, event: eventOf(entry) };
  const result = apply(compiled, whole, before, { nowMs: entry.atMs, scheme, carriedOutbox: [], outside }); // R2
  switch (result.kind) {
    case "unknown":
      return { kind: "unreplayable", rev, why: result.why };
    case "ignored":
      return { kind: "mismatch", rev, path: "event", expected: "a macrostep", found: "it changes nothing" };
    case "dropped":
      return { kind: "mismatch", rev, path: "event", expected: "a macrostep", found: `dropped: ${result.reason}` };
    case "stepped":
      return compared(entry, result.record);
  }
}

type Result = StepResult | { readonly kind: "unknown"; readonly why: string };

function apply(compiled: CompiledMachine, entry: JournalEntry, before: ActorRecord | undefined, env: StepEnv): Result {
  try {
    if (entry.cause.kind === "reconcile" && before !== undefined) return reconcile(compiled, before, env);
    const journaled = journaledMessage(entry, before);
    if (journaled.kind === "unknown") return journaled;
    const { message } = journaled;
    const { passedOver } = entry;
    if (passedOver === undefined || before === undefined || message.kind !== "event")
      return step(compiled, before, message, env); // R1
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is only written down again, never looked at
    return passOver(compiled, before, message, env, passedOver as DropReason);
  } catch (error) {
    if (error instanceof RuntimeFault) return { kind: "unknown", why: `${error.code} ${error.message}` };
    throw error;
  }
}

/** R3. */
function compared(entry: JournalEntry, record: ActorRecord): Taken {
  const last = record.outbox.at(-1);
  if (last?.kind !== "journal") return { record };
  // An entry of an older build does not name what it started.
  const decided = entry.starts === undefined ? { ...last, starts: undefined } : last;
  const [difference] = differences(macrostepOf(entry), macrostepOf(decided));
  if (difference === undefined) return { record };
  return {
    kind: "mismatch",
    rev: entry.rev,
    path: difference.path,
    expected: difference.before,
    found: difference.after,
  };
}

/** What a macrostep decided: neither how its entry is addressed, nor who committed it. */
function macrostepOf(macrostep: JournalEntry | EffectOf<"journal">): object {
  const { rev, prevRev, event, blobs, cause, principal, from, to, status, effects, atMs } = macrostep;
  const { parent, sender, host, passedOver, ran, starts } = macrostep;
  return {
    rev,
    prevRev,
    event,
    blobs,
    cause,
    principal,
    from,
    to,
    status,
    effects,
    atMs,
    parent,
    sender,
    host,
    passedOver,
    ran,
    starts,
  };
}
