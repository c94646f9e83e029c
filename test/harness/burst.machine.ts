import { assign, fromPromise, setup } from "xstate";

/** One command: something to note, or to have done by one job of one of two kinds, and a payload, so that records have an ordinary size. */
export interface BurstInput {
  readonly kind: "call" | "file" | "note";
  readonly payload: string;
}

const suppliedByNode = fromPromise<string, { readonly payload: string }>(async () => {
  throw new Error("supplied by the node");
});

/** Counts what was applied: `results` has one element however often the job ran. */
export const burstMachine = setup({
  types: {
    context: {} as BurstInput & { readonly results: readonly string[]; readonly failures: number },
    input: {} as BurstInput,
  },
  actors: { call: suppliedByNode, file: suppliedByNode },
  actions: {
    noted: assign({ results: ["noted"] }),
    failed: assign({ failures: ({ context }) => context.failures + 1 }),
  },
}).createMachine({
  id: "burst",
  version: "1",
  context: ({ input }) => ({ ...input, results: [], failures: 0 }),
  initial: "arriving",
  states: {
    arriving: {
      always: [
        { guard: ({ context }) => context.kind === "note", target: "served", actions: "noted" },
        { guard: ({ context }) => context.kind === "call", target: "calling" },
        { target: "filing" },
      ],
    },
    calling: {
      invoke: {
        id: "call",
        src: "call",
        input: ({ context }) => ({ payload: context.payload }),
        onDone: {
          target: "served",
          actions: assign({ results: ({ context, event }) => [...context.results, event.output] }),
        },
        onError: { target: "served", actions: "failed" },
      },
    },
    filing: {
      invoke: {
        id: "file",
        src: "file",
        input: ({ context }) => ({ payload: context.payload }),
        onDone: {
          target: "served",
          actions: assign({ results: ({ context, event }) => [...context.results, event.output] }),
        },
        onError: { target: "served", actions: "failed" },
      },
    },
    served: { tags: "idle" },
  },
});
