import { assign, fromPromise, setup } from "xstate";

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});

/** Runs one job after another and keeps what came of each. */
export const errandMachine = setup({
  types: {
    context: {} as { results: unknown[]; errors: unknown[] },
    events: {} as { type: "RUN"; src: "free" | "keyed" | "risky" } | { type: "GIVE_UP" },
  },
  actors: { free: suppliedByNode, keyed: suppliedByNode, risky: suppliedByNode },
  actions: {
    keepResult: assign({
      results: ({ context, event }) => [...context.results, (event as unknown as { output: unknown }).output],
    }),
    keepError: assign({
      errors: ({ context, event }) => [...context.errors, (event as unknown as { error: unknown }).error],
    }),
  },
}).createMachine({
  id: "errand",
  version: "1",
  context: { results: [], errors: [] },
  initial: "waiting",
  states: {
    waiting: {
      on: {
        RUN: [
          { guard: ({ event }) => event.src === "free", target: "free" },
          { guard: ({ event }) => event.src === "keyed", target: "keyed" },
          { target: "risky" },
        ],
      },
    },
    free: {
      on: { GIVE_UP: "waiting" },
      invoke: {
        id: "free",
        src: "free",
        onDone: { target: "waiting", actions: "keepResult" },
        onError: { target: "waiting", actions: "keepError" },
      },
    },
    keyed: {
      invoke: {
        id: "keyed",
        src: "keyed",
        onDone: { target: "waiting", actions: "keepResult" },
        onError: { target: "waiting", actions: "keepError" },
      },
    },
    risky: {
      invoke: {
        id: "risky",
        src: "risky",
        onDone: { target: "waiting", actions: "keepResult" },
        onError: { target: "waiting", actions: "keepError" },
      },
    },
  },
});
