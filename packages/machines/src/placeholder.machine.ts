import { RuntimeFault } from "@holdfast/protocol";
import { createMachine, fromPromise, type ActorLogic, type Snapshot } from "xstate";

/** A job that only the node can do: it replaces this by its implementation of the same name. */
export const suppliedByNode = <Output, Input>() =>
  fromPromise<Output, Input>(() =>
    Promise.reject(
      new RuntimeFault(
        "HF-3003",
        "Job: expected an implementation supplied by the node, found none. Register one under its name.",
      ),
    ),
  );

/** A child that is an actor of its own type: the app says which one. */
export const actorOfOwn = <Input, Output, Event extends { type: string }>(): ActorLogic<
  Snapshot<Output>,
  Event,
  Input
> =>
  // Types only: an empty machine takes every event and input, and never has an output.
  createMachine({}) as unknown as ActorLogic<Snapshot<Output>, Event, Input>;
