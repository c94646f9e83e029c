import { assign, fromPromise, setup } from "xstate";

/** Takes payments and counts them. The second version has a state that the first one does not know. */
const till = (version: string, initial: "open" | "audited") =>
  setup({
    types: { context: {} as { paid: number; sum: number }, events: {} as { type: "pay"; amount: number } },
  }).createMachine({
    id: "till",
    version,
    context: { paid: 0, sum: 0 },
    on: {
      pay: {
        actions: assign({
          paid: ({ context }) => context.paid + 1,
          sum: ({ context, event }) => context.sum + event.amount,
        }),
      },
    },
    initial,
    states: version === "1" ? { open: { tags: "idle" } } : { open: { tags: "idle" }, audited: { tags: "idle" } },
  });

export const firstTill = till("1", "open");
export const secondTill = till("2", "audited");

/** One effect outside that takes its time and must never happen twice. */
export const haulMachine = setup({
  types: {
    context: {} as { ms: number; done: unknown },
    input: {} as { ms: number },
  },
  actors: {
    carry: fromPromise<unknown, { ms: number }>(async () => {
      throw new Error("supplied by the node");
    }),
  },
}).createMachine({
  id: "haul",
  version: "1",
  context: ({ input }) => ({ ms: input.ms, done: undefined }),
  initial: "carrying",
  states: {
    carrying: {
      invoke: {
        id: "carry",
        src: "carry",
        input: ({ context }) => ({ ms: context.ms }),
        onDone: { target: "arrived", actions: assign({ done: ({ event }) => event.output }) },
        onError: "lost",
      },
    },
    arrived: { type: "final" },
    lost: { type: "final" },
  },
  output: ({ context }) => context.done,
});
