import { RuntimeFault, type ClosePolicy } from "@holdfast/protocol";
import { StateMachine, type AnyActorLogic } from "xstate";

/** Where a child source runs. `actor`: a record of its own. `job`: one call of a promise. `host`: volatile, restarted elsewhere. */
export interface ChildSource {
  readonly kind: "actor" | "job" | "host";
  readonly logic?: AnyActorLogic;
  /** Actor type and pool; only of kind `actor`. */
  readonly type?: string;
  readonly pool?: string;
  readonly closePolicy?: ClosePolicy;
}

/** Which child sources are actors, told by whoever registers the machine. */
export interface ChildActor {
  readonly type: string;
  readonly pool: string;
  readonly closePolicy?: ClosePolicy;
}

/**
 * Decides where one child source runs.
 * @throws RuntimeFault HF-1003 when it has no logic, or logic that needs a record of its own but has no actor type
 */
export function childSource(
  machine: string,
  src: string,
  logic: AnyActorLogic | undefined,
  actor: ChildActor | undefined,
): ChildSource {
  if (actor !== undefined) return { kind: "actor", ...(logic === undefined ? {} : { logic }), ...actor };
  if (logic === undefined) {
    throw cannot(
      machine,
      src,
      "has no logic",
      `Add it to setup({ actors }), or return its actor type from childActor("${src}").`,
    );
  }
  if (logic instanceof StateMachine || logic.start === undefined) {
    const what = logic instanceof StateMachine ? "a machine" : "transition logic";
    throw cannot(
      machine,
      src,
      `is ${what}, which needs a record of its own, and has no actor type`,
      `Register it as an actor and return { type, pool } from childActor("${src}").`,
    );
  }
  return { kind: isPromiseLogic(logic) ? "job" : "host", logic };
}

/**
 * Whether logic is a promise: it settles by itself and takes no events. Found out by behaviour, because XState marks it in no way:
 * only promise logic turns its own resolve event into an output. No user code runs.
 */
function isPromiseLogic(logic: AnyActorLogic): boolean {
  const probe = {};
  const active = { status: "active", output: undefined, error: undefined, input: undefined };
  const resolved = { type: "xstate.promise.resolve", data: probe };
  try {
    const settled: unknown = Reflect.apply(logic.transition, logic, [active, resolved, { self: probe }]);
    return typeof settled === "object" && settled !== null && "output" in settled && settled.output === probe;
  } catch {
    return false; // a callback looks for its running instance first, and there is none
  }
}

function cannot(machine: string, src: string, found: string, fix: string): RuntimeFault {
  return new RuntimeFault("HF-1003", `Machine "${machine}": child source "${src}" ${found}. ${fix}`, {
    facts: { machine, src },
  });
}
