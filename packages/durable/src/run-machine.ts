import {
  MAX_STARTS_PER_COMMIT,
  RuntimeFault,
  type ActorRecord,
  type ChildEntry,
  type PlainEvent,
} from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import type { CompiledMachine } from "./compile.ts";
import { failedSnapshot, type LiveSnapshot } from "./engine.ts";
import { restoreFault } from "./restore-fault.ts";
import { StepScope, type Decision, type Spawned } from "./step-scope.ts";
import type { StepEnv } from "./step-types.ts";

/** What XState made of one event. */
export interface MachineRun {
  readonly previous: LiveSnapshot | undefined;
  readonly next: LiveSnapshot;
  readonly decisions: readonly Decision[];
  readonly spawned: readonly Spawned[];
  /** What the machine threw, when it did. */
  readonly thrown?: unknown;
}

/**
 * First macrostep of an actor.
 * An error in the initial state is an outcome like any other: the actor exists, failed, and its parent is told.
 */
export function runInitial(compiled: CompiledMachine, record: ActorRecord, input: unknown, env: StepEnv): MachineRun {
  const scope = new StepScope(compiled, record, record.rev + 1, env);
  return collect(scope, env, undefined, () => compiled.engine.initial(scope.asActorScope(), input));
}

/**
 * One macrostep. A throw in an assign, a guard or another expression means what it means in memory: the actor fails, its context
 * and state stay, the macrostep's effects are not executed.
 *
 * @param children  entries as the message changed them, before the machine sees it
 * @throws RuntimeFault HF-1002 when the namespace does not have the pool of a child: nothing of it may be committed either
 * @throws RuntimeFault HF-2005 when the stored state is not one of this machine's: nothing of it may be committed
 */
export function runTransition(
  compiled: CompiledMachine,
  record: ActorRecord,
  event: PlainEvent,
  env: StepEnv,
  children: Readonly<Record<string, ChildEntry>> = record.snapshot.children,
): MachineRun {
  const scope = new StepScope(compiled, record, record.rev + 1, env);
  const previous = liveSnapshot(compiled, record, scope);
  scope.previous = previous;
  scope.children = children;
  return collect(scope, env, previous, () => compiled.engine.transition(previous, event, scope.asActorScope()));
}

function collect(
  scope: StepScope,
  env: StepEnv,
  previous: LiveSnapshot | undefined,
  run: () => LiveSnapshot,
): MachineRun {
  let next: LiveSnapshot;
  let thrown: { readonly thrown?: unknown } = {};
  try {
    next = run();
    checkStarts(scope, env.hardLimits?.startsPerCommit ?? MAX_STARTS_PER_COMMIT);
    if (previous === undefined && next.status === "error") scope.discard();
  } catch (error) {
    // A limit that was passed is no bug of an expression: the machine asked for too much, and is told so for good.
    thrown = error instanceof RuntimeFault ? {} : { thrown: error };
    scope.discard();
    next = previous === undefined ? failedSnapshot(error) : { ...previous, status: "error", error };
  }
  scope.close();
  // XState itself turns what is thrown in an initial state into a failed snapshot.
  if (scope.environmentFault !== undefined) throw scope.environmentFault;
  return { previous, next, decisions: scope.decisions, spawned: scope.spawned, ...thrown };
}

function checkStarts({ spawned, sessionId }: StepScope, limit: number): void {
  const starts = spawned.filter(({ kind }) => kind === "actor").length;
  if (starts <= limit) return;
  throw new RuntimeFault(
    "HF-5202",
    `${sessionId}: ${starts} child actors started by one event, at most ${limit} may. Start them in waves, a group at a time.`,
    { facts: { key: sessionId, starts, limit } },
  );
}

/** From the cache when this very snapshot came from the last step, else restored and cached. */
function liveSnapshot(compiled: CompiledMachine, record: ActorRecord, scope: StepScope): LiveSnapshot {
  const hot = compiled.live.get(record.snapshot);
  if (hot !== undefined) return hot;
  const restored = { ...restore(compiled, record, scope), children: addressesOf(record.snapshot.children) };
  compiled.live.set(record.snapshot, restored);
  return restored;
}

function restore(compiled: CompiledMachine, record: ActorRecord, scope: StepScope): LiveSnapshot {
  try {
    return compiled.engine.restore(record.snapshot, scope.asActorScope());
  } catch (cause) {
    throw restoreFault(compiled, record, cause);
  }
}

const addressesOf = (children: Readonly<Record<string, ChildEntry>>): Record<string, ActorAddress> =>
  Object.fromEntries(Object.entries(children).map(([id, { key }]) => [id, new ActorAddress(key, id)]));
