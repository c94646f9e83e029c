import { assign, enqueueActions, fromCallback, fromPromise, sendParent, sendTo, setup } from "xstate";

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});
const placeholder = setup({}).createMachine({ id: "placeholder" });

/** Starts many children at once, each with an input of its own, and counts what comes back. */
export const spreadMachine = setup({
  types: {
    context: {} as { results: number; errors: unknown[]; said: unknown[] },
    events: {} as
      | { type: "SPREAD"; from: number; count: number; input: unknown }
      | { type: "SAID"; n: unknown }
      | { type: "TELL"; id: string; n: unknown }
      | { type: `xstate.done.actor.${string}`; output: unknown }
      | { type: `xstate.error.actor.${string}`; error: unknown },
  },
  actors: { leaf: placeholder },
  actions: {
    spread: enqueueActions(({ event, enqueue }) => {
      if (event.type !== "SPREAD") return;
      for (let n = event.from; n < event.from + event.count; n += 1)
        enqueue.spawnChild("leaf", { id: `leaf-${n}`, input: { n, text: event.input } });
    }),
  },
}).createMachine({
  id: "spread",
  version: "1",
  context: { results: 0, errors: [], said: [] },
  on: {
    SPREAD: { actions: "spread" },
    TELL: {
      actions: sendTo(
        ({ event }) => event.id,
        ({ event }) => ({ type: "WORD", n: event.n }),
      ),
    },
    SAID: { actions: assign({ said: ({ context, event }) => [...context.said, event.n] }) },
    "xstate.done.actor.*": { actions: assign({ results: ({ context }) => context.results + 1 }) },
    "xstate.error.actor.*": {
      actions: assign({ errors: ({ context, event }) => [...context.errors, (event as { error: unknown }).error] }),
    },
  },
});

interface LeafInput {
  readonly n: number;
  readonly text: string;
}

/** Knows how long its input was; REPORT sends it to the parent, RUN gives it to a job, HEAR to a volatile host; FINISH ends with it. */
export const leafMachine = setup({
  types: {
    context: {} as { n: number; text: string; heard: unknown[]; errors: unknown[] },
    input: {} as LeafInput,
    events: {} as
      | { type: "WORD"; n: unknown }
      | { type: "REPORT" }
      | { type: "RUN" }
      | { type: "HEAR" }
      | { type: "HEARD"; n: unknown }
      | { type: "FINISH" },
  },
  actors: {
    labour: suppliedByNode,
    ear: fromCallback<{ type: "NONE" }, string>(({ input, sendBack }) => sendBack({ type: "HEARD", n: input.length })),
  },
}).createMachine({
  id: "leaf",
  version: "1",
  context: ({ input }) => ({ n: input.n, text: input.text, heard: [], errors: [] }),
  initial: "listening",
  on: {
    WORD: { actions: assign({ heard: ({ context, event }) => [...context.heard, String(event.n).length] }) },
    REPORT: { actions: sendParent(({ context }) => ({ type: "SAID", n: context.text })) },
    FINISH: ".done",
  },
  states: {
    listening: { on: { RUN: "working", HEAR: "hearing" } },
    working: {
      invoke: {
        id: "labour",
        src: "labour",
        input: ({ context }) => context.text,
        onDone: {
          target: "listening",
          actions: assign({ heard: ({ context, event }) => [...context.heard, String(event.output).length] }),
        },
        onError: {
          target: "listening",
          actions: assign({ errors: ({ context, event }) => [...context.errors, event.error] }),
        },
      },
    },
    hearing: {
      on: { HEARD: { actions: assign({ heard: ({ context, event }) => [...context.heard, event.n] }) } },
      invoke: { id: "ear", src: "ear", input: ({ context }) => context.text },
    },
    done: { type: "final" },
  },
  output: ({ context }) => context.text,
});
