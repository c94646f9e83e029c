import { assign, enqueueActions, fromPromise, setup } from "xstate";

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});
const placeholder = setup({}).createMachine({ id: "placeholder" });

/** Gives out errands and stays: what comes back, and how often, is in its context. */
export const officeMachine = setup({
  types: {
    context: {} as { results: string[]; errors: unknown[]; notes: number },
    events: {} as
      | { type: "ERRANDS"; ids: readonly string[]; letter: string }
      | { type: "NOTE" }
      | { type: `xstate.done.actor.${string}`; output: unknown }
      | { type: `xstate.error.actor.${string}`; error: unknown },
  },
  actors: { errand: placeholder },
  actions: {
    giveOut: enqueueActions(({ event, enqueue }) => {
      if (event.type !== "ERRANDS") return;
      for (const id of event.ids) enqueue.spawnChild("errand", { id, input: { id, letter: event.letter } });
    }),
  },
}).createMachine({
  id: "office",
  version: "1",
  tags: "idle",
  context: { results: [], errors: [], notes: 0 },
  on: {
    ERRANDS: { actions: "giveOut" },
    NOTE: { actions: assign({ notes: ({ context }) => context.notes + 1 }) },
    "xstate.done.actor.*": {
      actions: assign({
        results: ({ context, event }) => [...context.results, (event as { output: { id: string } }).output.id],
      }),
    },
    "xstate.error.actor.*": {
      actions: assign({ errors: ({ context, event }) => [...context.errors, (event as { error: unknown }).error] }),
    },
  },
});

/** Runs one job and ends with its letter. */
export const errandMachine = setup({
  types: { context: {} as { id: string; letter: string }, input: {} as { id: string; letter: string } },
  actors: { run: suppliedByNode },
}).createMachine({
  id: "errand",
  version: "1",
  context: ({ input }) => ({ ...input }),
  initial: "running",
  states: {
    running: { invoke: { id: "run", src: "run", input: ({ context }) => context.id, onDone: "done", onError: "done" } },
    done: { type: "final" },
  },
  output: ({ context }) => ({ id: context.id, letter: context.letter }),
});
