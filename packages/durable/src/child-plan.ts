// Which children an actor has after a step: those before, plus the spawned ones, minus the stopped ones.
//   C1 by key       a child of an earlier step is recognised by its key, one of this step by the object XState made (two can share a key)
//   C2 never both   what was spawned and stopped in one step never starts
//   C3 no orphans   a living id spawned again stops the first; XState would leave it running without an owner
//   C4 close policy on closing, `await` children stay, `detach` children are let go, all others are stopped
import type { ChildEntry, ClosePolicy } from "@holdfast/protocol";
import { keyOf, type ActorAddress } from "./actor-address.ts";
import type { CompiledMachine } from "./compile.ts";
import type { Decision, Spawned } from "./step-scope.ts";

/** How a step leaves the actor. `final`: reached a final state; `failed`: error; `stopped`: by its parent. */
export type Ending = "none" | "final" | "failed" | "stopped";

export interface ChildPlan {
  readonly entries: Record<string, ChildEntry>;
  /** Spawned in this step and to be started. */
  readonly starting: readonly Spawned[];
  /** Spawned and stopped in this step: what is sent to them goes nowhere. */
  readonly skipped: ReadonlySet<object>;
  /** Key of a child that a `stop` decision stops, by the object of the decision. */
  readonly stopping: ReadonlyMap<object, StoppedChild>;
  /** Stopped without a decision of XState's, after everything else. */
  readonly killed: readonly StoppedChild[];
  /** Entries that went away. */
  readonly removed: readonly ChildEntry[];
}

export interface StoppedChild {
  readonly key: string;
  readonly kind: ChildEntry["kind"];
}

interface Candidate {
  readonly id: string;
  readonly entry: ChildEntry;
  readonly fresh: Spawned | undefined;
}

export interface ChildPlanInput {
  readonly compiled: CompiledMachine;
  readonly before: Readonly<Record<string, ChildEntry>>;
  readonly spawned: readonly Spawned[];
  readonly decisions: readonly Decision[];
  readonly ending: Ending;
  /** Children as XState left them; its last act in a final state is to stop these. */
  readonly leftByXState: Readonly<Record<string, ActorAddress | undefined>>;
}

export function planChildren(input: ChildPlanInput): ChildPlan {
  const { before, spawned, decisions, ending } = input;
  if (ending === "none" && spawned.length === 0 && !decisions.some(({ kind }) => kind === "stop"))
    return unchanged(before);
  const candidates: Candidate[] = [
    ...Object.entries(before).map(([id, entry]) => ({ id, entry, fresh: undefined })),
    ...spawned.map((fresh) => ({ id: fresh.id, entry: entryOf(fresh), fresh })),
  ];
  const stopping = new Map<object, StoppedChild>();
  const gone = new Set<Candidate>();
  for (const ref of explicitStops(input)) {
    const target = candidates.find((candidate) => isStoppedBy(candidate, ref, spawned));
    if (target === undefined || gone.has(target)) continue;
    gone.add(target);
    if (runs(target)) stopping.set(ref, { key: target.entry.key, kind: target.entry.kind });
  }

  const slots = new Map<string, Candidate>();
  const killed: StoppedChild[] = [];
  const kill = (candidate: Candidate): void => {
    gone.add(candidate);
    if (runs(candidate)) killed.push({ key: candidate.entry.key, kind: candidate.entry.kind });
  };
  for (const candidate of candidates) {
    if (gone.has(candidate)) continue;
    const former = slots.get(candidate.id);
    if (former !== undefined) kill(former); // C3
    slots.set(candidate.id, candidate);
  }
  if (ending !== "none") {
    for (const [id, candidate] of slots) {
      const policy = closePolicyOf(input.compiled, candidate.entry);
      if (candidate.entry.status === "active" && policy === "await" && ending === "final") continue; // C4
      slots.delete(id);
      if (policy !== "detach") kill(candidate);
    }
  }

  const starting = candidates.filter((candidate) => candidate.fresh !== undefined && !gone.has(candidate));
  const removed = candidates.filter(
    (candidate) => candidate.fresh === undefined && slots.get(candidate.id) !== candidate,
  );
  return {
    entries: Object.fromEntries([...slots].map(([id, { entry }]) => [id, entry])),
    starting: starting.flatMap(({ fresh }) => (fresh === undefined ? [] : [fresh])),
    skipped: new Set([...gone].flatMap(({ fresh }) => (fresh === undefined ? [] : [fresh.ref]))),
    stopping,
    killed,
    removed: removed.map(({ entry }) => entry),
  };
}

const unchanged = (entries: Readonly<Record<string, ChildEntry>>): ChildPlan => ({
  entries,
  starting: [],
  skipped: new Set(),
  stopping: new Map(),
  killed: [],
  removed: [],
});

/** C2: nothing has to be stopped that never starts, nor what has settled. */
const runs = ({ entry, fresh }: Candidate): boolean => fresh === undefined && entry.status === "active";

function isStoppedBy({ entry, fresh }: Candidate, ref: object, spawned: readonly Spawned[]): boolean {
  if (fresh !== undefined) return fresh.ref === ref;
  return keyOf(ref) === entry.key && !spawned.some((child) => child.ref === ref); // C1
}

/** Stops that the machine asked for, without those that XState adds to every ending. */
function explicitStops({ decisions, ending, leftByXState }: ChildPlanInput): readonly object[] {
  const stops = decisions.flatMap((decision) => (decision.kind === "stop" ? [decision.ref] : []));
  if (ending === "none") return stops;
  if (ending !== "final") return [];
  const left = new Set<unknown>(Object.values(leftByXState));
  return stops.filter((ref) => !left.has(ref));
}

function closePolicyOf(compiled: CompiledMachine, entry: ChildEntry): ClosePolicy {
  return compiled.children.get(entry.src)?.closePolicy ?? "cancel";
}

function entryOf({ kind, src, key, systemId, sync, input, blobs }: Spawned): ChildEntry {
  return {
    kind,
    src,
    key,
    status: "active",
    ...(systemId === undefined ? {} : { systemId }),
    ...(sync ? { sync } : {}),
    // An actor gets its input with the start message and keeps it in its own record.
    ...(kind === "actor" || input === undefined || blobs !== undefined ? {} : { input }),
    ...(blobs === undefined ? {} : { blobs }),
  };
}
