const DONE = "xstate.done.actor.";
const FAILED = "xstate.error.actor.";

/** How a child ended, as its parent's event says it. */
export type ChildOutcome =
  | { readonly kind: "done"; readonly childId: string; readonly output: unknown }
  | { readonly kind: "failed"; readonly childId: string; readonly error: unknown };

interface MaybeOutcome {
  readonly type: string;
  readonly childId?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
}

/** Reads the outcome of a child out of an event; undefined when the event is none. */
export function childOutcomeOf(event: MaybeOutcome): ChildOutcome | undefined {
  if (event.type.startsWith(DONE)) {
    return { kind: "done", childId: event.type.slice(DONE.length), output: event.output };
  }
  if (event.type.startsWith(FAILED)) {
    return { kind: "failed", childId: event.type.slice(FAILED.length), error: event.error };
  }
  // A question stays a child until it knows that its outcome is stored.
  return event.type === "waitSettled" && typeof event.childId === "string"
    ? { kind: "done", childId: event.childId, output: event.output }
    : undefined;
}
