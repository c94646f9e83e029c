import type { PlainEvent } from "@holdfast/protocol";
import { createActor, setup, SimulatedClock, type AnyActorRef, type AnyStateMachine } from "xstate";

/** A machine running as the child of another one, as it does in production. */
export interface ChildRig {
  readonly clock: SimulatedClock;
  readonly child: AnyActorRef;
  /** Everything the parent received: events, then the outcome. */
  readonly received: readonly PlainEvent[];
  readonly emitted: readonly PlainEvent[];
  /** Events that the child sent to its own children, `<child id> <event type>`. */
  readonly sent: readonly string[];
  /** @returns whether it changed anything */
  send(event: PlainEvent): boolean;
  /** A child of the child ends; dropped when there is no such child. */
  settle(childId: string, output: unknown): boolean;
  fail(childId: string, error: unknown): boolean;
  /** Output of the child; undefined while it lives. */
  output(): unknown;
}

const idOf = (ref: object): string => ("id" in ref && typeof ref.id === "string" ? ref.id : "");

/** Starts a machine under a parent that only listens. */
export function startChild(machine: AnyStateMachine, input: unknown): ChildRig {
  const clock = new SimulatedClock();
  const received: PlainEvent[] = [];
  const emitted: PlainEvent[] = [];
  const sent: string[] = [];
  const parent = setup({ actors: { child: machine } }).createMachine({
    invoke: { id: "child", src: "child", input },
    on: { "*": { actions: ({ event }) => received.push({ ...event }) } },
  });
  const root = createActor(parent, {
    clock,
    inspect: (inspected) => {
      if (inspected.type !== "@xstate.event") return;
      const receiver = idOf(inspected.actorRef);
      if (receiver === "conversation" && !inspected.event.type.startsWith("xstate.")) {
        sent.push(`${receiver} ${inspected.event.type}`);
      }
    },
  });
  const child: AnyActorRef | undefined = root.getSnapshot().children["child"];
  if (child === undefined) throw new Error("The child was not spawned.");
  child.on("*", (event: PlainEvent) => emitted.push({ ...event }));
  root.subscribe({ error: () => {} });
  root.start();

  const send: ChildRig["send"] = (event) => {
    const before: unknown = child.getSnapshot();
    if (child.getSnapshot().status !== "active") return false;
    child.send(event);
    return child.getSnapshot() !== before;
  };
  const has = (childId: string) => Object.hasOwn(child.getSnapshot().children ?? {}, childId);
  return {
    clock,
    child,
    received,
    emitted,
    sent,
    send,
    settle: (childId, output) => has(childId) && send({ type: `xstate.done.actor.${childId}`, output }),
    fail: (childId, error) => has(childId) && send({ type: `xstate.error.actor.${childId}`, error }),
    output: () => child.getSnapshot().output,
  };
}
