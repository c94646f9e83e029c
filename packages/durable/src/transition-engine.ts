import { isPlainObject } from "./plain-object.ts";
import type { AnyActorLogic } from "xstate";
import type { Engine, LiveSnapshot } from "./engine.ts";

/** Runs logic that is only a pure function of state and event (`fromTransition`). It has no children and no timers of its own. */
export function transitionEngine(logic: AnyActorLogic): Engine {
  return {
    initial: (scope, input) => liveForm(logic.getInitialSnapshot(scope, input)),
    transition(previous, event, scope) {
      const next: unknown = logic.transition(previous, event, scope);
      if (isPlainObject(next) && next["context"] === previous.context && next["status"] === previous.status)
        return previous;
      return liveForm(next);
    },
    restore: ({ status, context, output, error }) => liveForm({ status, context, output, error }),
    fits: () => true,
    expectation: () => ({ timers: new Map(), invokes: [], tags: new Set() }),
  };
}

function liveForm(snapshot: unknown): LiveSnapshot {
  const plain = isPlainObject(snapshot) ? snapshot : {};
  const { status, context, output, error } = plain;
  return {
    status: status === "done" || status === "error" || status === "stopped" ? status : "active",
    value: {},
    context,
    output,
    error,
    historyValue: {},
    children: {},
  };
}
