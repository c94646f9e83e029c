import type { PlainEvent } from "@holdfast/protocol";
import { createActor, createEmptyActor, type AnyActorLogic, type AnyActorRef, type AnyEventObject } from "xstate";

/** A child that runs as a real XState actor in this process and is lost with it. */
export interface VolatileHost {
  send(event: PlainEvent): void;
  stop(): void;
}

export interface VolatileHostOptions {
  /** Child id, as the machine knows it. */
  readonly id: string;
  readonly src: string;
  readonly input: unknown;
  readonly sync: boolean;
  /** Everything the child says to its parent: `sendBack`, snapshots, `xstate.done.actor.<id>`, `xstate.error.actor.<id>`. */
  readonly deliver: (event: PlainEvent) => void;
}

/**
 * Runs promise, callback or observable logic with a stand-in for its parent.
 * Everything it says arrives as an ordinary event, so live and recovered results take the same path.
 */
export function startVolatileHost(logic: AnyActorLogic, options: VolatileHostOptions): VolatileHost {
  let isLive = true;
  const standIn = parentStandIn((event) => {
    if (isLive) options.deliver(event);
  });
  // `syncSnapshot` is an option that XState itself passes and does not type.
  const actorOptions = {
    id: options.id,
    src: options.src,
    input: options.input,
    syncSnapshot: options.sync,
    parent: standIn,
  };
  const actor = createActor(logic, actorOptions);
  // Without an observer XState reports a failure as an uncaught exception as well; the event to the parent is what counts here.
  actor.subscribe({ error: () => undefined });
  actor.start();
  return {
    send: (event) => actor.send(event),
    stop: () => {
      isLive = false;
      stopChild(actor);
    },
  };
}

function parentStandIn(deliver: (event: PlainEvent) => void): AnyActorRef {
  const standIn: Record<string, unknown> = {
    id: "parent",
    sessionId: "parent",
    system: createEmptyActor().system,
    _send: (event: AnyEventObject) => deliver(event),
  };
  standIn["ref"] = standIn;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a parent, logic that is not a machine reads `system` and calls `_send`, nothing else
  return standIn as unknown as AnyActorRef;
}

/** The public stop() refuses an actor with a parent; its parent would call this. */
function stopChild(actor: object): void {
  const stop: unknown = Reflect.get(actor, "_stop");
  if (typeof stop === "function") Reflect.apply(stop, actor, []);
}
