// Events that only the interpreter itself may produce. Everything of XState and of ours begins with `xstate.`, so one test at the border
// keeps all of them out.

export const isReserved = (type: string): boolean => type.startsWith("xstate.");

/** Child to parent, for the owner of a systemId that the child does not know: `{ systemId, event }`. */
export const RELAY_EVENT = "xstate.relay";
/** Last message on a link between actors that are not parent and child. */
export const LINK_CLOSED_EVENT = "xstate.link.closed";
/** A delayed send to something without an actor key of its own, kept as a timer to oneself: `{ to, event }`. */
export const DELIVER_EVENT = "xstate.deliver";

export const doneType = (childId: string): string => `xstate.done.actor.${childId}`;
export const errorType = (childId: string): string => `xstate.error.actor.${childId}`;
export const snapshotType = (childId: string): string => `xstate.snapshot.${childId}`;

/** Outcome of a child that finished, as its parent expects it. */
export const doneActorEvent = (
  childId: string,
  output: unknown,
): { type: string; output: unknown; actorId: string } => ({
  type: doneType(childId),
  output,
  actorId: childId,
});

/** Outcome of a child that failed, as its parent expects it. */
export const errorActorEvent = (
  childId: string,
  error: unknown,
): { type: string; error: unknown; actorId: string } => ({
  type: errorType(childId),
  error,
  actorId: childId,
});
