import { assign, enqueueActions, fromPromise, sendParent, sendTo, setup, spawnChild } from "xstate";

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});
const placeholder = setup({}).createMachine({ id: "placeholder" });

/** Delegates to helpers and keeps what they say and what became of them, in order. */
export const bossVersion = (version: string) =>
  setup({
    types: {
      context: {} as { said: unknown[]; results: unknown[]; errors: unknown[] },
      events: {} as
        | { type: "DELEGATE"; id: string; src?: "helper" | "stranger"; input?: unknown }
        | { type: "TELL"; id: string; n: unknown }
        | { type: "SAID"; n: unknown }
        | { type: `xstate.done.actor.${string}`; output: unknown }
        | { type: `xstate.error.actor.${string}`; error: unknown },
    },
    actors: { helper: placeholder, stranger: placeholder },
    actions: {
      delegate: enqueueActions(({ event, enqueue }) => {
        if (event.type === "DELEGATE") enqueue.spawnChild(event.src ?? "helper", { id: event.id, input: event.input });
      }),
    },
  }).createMachine({
    id: "boss",
    version,
    context: { said: [], results: [], errors: [] },
    on: {
      DELEGATE: { actions: "delegate" },
      TELL: {
        actions: sendTo(
          ({ event }) => event.id,
          ({ event }) => ({ type: "WORD", n: event.n }),
        ),
      },
      SAID: { actions: assign({ said: ({ context, event }) => [...context.said, event.n] }) },
      "xstate.done.actor.*": {
        actions: assign({
          results: ({ context, event }) => [...context.results, (event as { output: unknown }).output],
        }),
      },
      "xstate.error.actor.*": {
        actions: assign({ errors: ({ context, event }) => [...context.errors, (event as { error: unknown }).error] }),
      },
    },
  });

export const bossMachine = bossVersion("1");

interface HelperInput {
  /** Characters its context begins with. */
  readonly bulk?: number;
  /** Throws in its initial state. */
  readonly breaks?: boolean;
  /** Does not wait for GO. */
  readonly works?: boolean;
}

/** Collects words, says what it is told to say; GO makes it work, the end of its work or FINISH ends it. */
export const helperMachine = setup({
  types: {
    context: {} as { words: unknown[]; bulk: string; works: boolean },
    input: undefined as HelperInput | undefined,
    events: {} as { type: "WORD"; n: unknown } | { type: "GO" } | { type: "FINISH" } | { type: "SAY"; n: unknown },
  },
  actors: { labour: suppliedByNode },
}).createMachine({
  id: "helper",
  version: "1",
  context: ({ input }) => {
    if (input?.breaks === true) throw new Error("cannot begin");
    return { words: [], bulk: "x".repeat(input?.bulk ?? 0), works: input?.works ?? false };
  },
  initial: "arriving",
  on: {
    WORD: { actions: assign({ words: ({ context, event }) => [...context.words, event.n] }) },
    SAY: { actions: sendParent(({ event }) => ({ type: "SAID", n: event.n })) },
    FINISH: ".done",
  },
  states: {
    arriving: { always: [{ guard: ({ context }) => context.works, target: "working" }, { target: "listening" }] },
    listening: { on: { GO: "working" } },
    working: { invoke: { id: "labour", src: "labour", onDone: "done", onError: "done" } },
    done: { type: "final" },
  },
  output: ({ context }) => ({ words: context.words }),
});

/** Cannot do without an assistant from the first moment on. */
export const managerMachine = setup({ actors: { assistant: placeholder } }).createMachine({
  id: "manager",
  version: "1",
  entry: spawnChild("assistant", { id: "assistant" }),
});
