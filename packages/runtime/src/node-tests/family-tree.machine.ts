import { assign, enqueueActions, setup } from "xstate";

const placeholder = setup({}).createMachine({ id: "placeholder" });

/** One generation of a family: has children, keeps a secret, ends when it is told to; `isErased`: what it held is to go. */
export const relativeMachine = setup({
  types: {
    context: {} as { secret: string; isErased: boolean },
    input: {} as { secret: string } | undefined,
    events: {} as { type: "HAVE"; id: string; secret: string } | { type: "END" } | { type: "ERASE" },
    output: {} as { secret: string },
  },
  actors: { child: placeholder },
}).createMachine({
  id: "relative",
  version: "1",
  context: ({ input }) => ({ secret: input?.secret ?? "", isErased: false }),
  output: ({ context }) => ({ secret: context.secret }),
  on: {
    HAVE: {
      actions: enqueueActions(({ event, enqueue }) => {
        enqueue.spawnChild("child", { id: event.id, input: { secret: event.secret } });
      }),
    },
    // As a conversation does: a settled child is let go.
    "xstate.done.actor.*": {
      actions: enqueueActions(({ event, enqueue }) => {
        enqueue.stopChild(event.type.slice("xstate.done.actor.".length));
      }),
    },
    END: ".ended",
    ERASE: { target: ".ended", actions: assign({ isErased: true, secret: "" }) },
  },
  initial: "living",
  states: { living: {}, ended: { type: "final" } },
});
