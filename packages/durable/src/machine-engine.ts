import type { StoredSnapshot } from "@holdfast/protocol";
import {
  getStateNodes,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type Snapshot,
} from "xstate";
import type { Engine, Expectation, ExpectedInvoke, LiveSnapshot } from "./engine.ts";

/** Runs a compiled machine. Uses the methods that XState's own Actor uses, never `transition()` or a running Actor. */
export function machineEngine(machine: AnyStateMachine): Engine {
  const restore = (stored: StoredSnapshot, scope: AnyActorScope): AnyMachineSnapshot =>
    machine.restoreSnapshot(persistedForm(stored), scope);

  return {
    initial: (scope, input) => machine.getInitialSnapshot(scope, input),
    transition: (previous, event, scope) => machine.transition(ownSnapshot(previous), event, scope),
    // Context and children stay out of XState's revival: it would change the stored context in place and make Actors.
    restore: (stored, scope) => ({ ...restore(stored, scope), context: stored.context }),
    fits(stored) {
      try {
        getStateNodes(machine.root, stateValue(stored));
        return true;
      } catch {
        return false;
      }
    },
    expectation: (stored) => expectationOf(machine, stored),
  };
}

function expectationOf(machine: AnyStateMachine, stored: StoredSnapshot): Expectation {
  const { _nodes: nodes, tags } = machine.resolveState({ value: stateValue(stored), context: {} });
  const timers = new Map<string, (context: unknown) => unknown>();
  const invokes: ExpectedInvoke[] = [];
  for (const node of nodes) {
    for (const { eventType, delay } of node.after) timers.set(eventType, delayOf(machine, delay));
    for (const { id, src, systemId, onSnapshot, input } of node.invoke) {
      const sync = onSnapshot !== undefined;
      invokes.push({ id, src: typeof src === "string" ? src : "", systemId, sync, input: inputOf(input) });
    }
  }
  return { timers, invokes, tags };
}

/** Event that expressions see when a new version of a machine is fitted to a stored state. */
const RECONCILE_EVENT = { type: "xstate.reconcile" };

const inputOf =
  (input: unknown): ExpectedInvoke["input"] =>
  (context) =>
    typeof input === "function" ? Reflect.apply(input, undefined, [{ context, event: RECONCILE_EVENT }]) : input;

const delayOf =
  (machine: AnyStateMachine, delay: unknown): ((context: unknown) => unknown) =>
  (context) => {
    const resolved: unknown = typeof delay === "string" ? machine.implementations.delays[delay] : delay;
    if (typeof resolved !== "function") return resolved;
    return Reflect.apply(resolved, undefined, [{ context, event: RECONCILE_EVENT }]);
  };

// Both casts below are proven by where the value comes from: a LiveSnapshot of this engine is always what this machine's own
// methods returned, and a stored value was written from such a snapshot.

function ownSnapshot(snapshot: LiveSnapshot): AnyMachineSnapshot {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by this machine, see above
  return snapshot as AnyMachineSnapshot;
}

function stateValue(stored: StoredSnapshot): AnyMachineSnapshot["value"] {
  return typeof stored.value === "string" || (typeof stored.value === "object" && stored.value !== null)
    ? stored.value
    : {};
}

function persistedForm(stored: StoredSnapshot): Snapshot<unknown> {
  const historyValue: Record<string, readonly { readonly id: string }[]> = {};
  for (const [node, ids] of Object.entries(stored.historyValue)) historyValue[node] = ids.map((id) => ({ id }));
  const { status, value, output, error } = stored;
  const persisted = { status, value, output, error, context: {}, children: {}, historyValue };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape getPersistedSnapshot() writes, which XState types as opaque
  return persisted as unknown as Snapshot<unknown>;
}
