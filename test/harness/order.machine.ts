import { assign, fromPromise, sendParent, setup } from "xstate";

/** A root that delegates to items, counts what they say, and ends with an effect of its own. Small, but it has every kind of arrow. */
export interface OrderInput {
  readonly items: number;
  readonly waitMs?: number;
  /** Goes into the input of every item, and with its result back. */
  readonly note?: string;
}

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});
const placeholder = setup({}).createMachine({ id: "placeholder" });

export const itemMachine = setup({
  types: {
    context: {} as { n: number; waitMs: number; note: string; receipt: unknown },
    input: {} as { n: number; waitMs: number; note?: string },
  },
  actors: { charge: suppliedByNode },
  delays: { settleDelay: ({ context }) => context.waitMs },
}).createMachine({
  id: "item",
  version: "1",
  context: ({ input }) => ({ n: input.n, waitMs: input.waitMs, note: input.note ?? "", receipt: undefined }),
  initial: "charging",
  states: {
    charging: {
      invoke: {
        id: "charge",
        src: "charge",
        input: ({ context }) => context.note,
        onDone: { target: "settling", actions: assign({ receipt: ({ event }) => event.output }) },
        onError: { target: "failed" },
      },
    },
    settling: {
      entry: sendParent(({ context }) => ({ type: "PROGRESS", n: context.n })),
      after: { settleDelay: { target: "settled" } },
    },
    settled: { type: "final", entry: sendParent(({ context }) => ({ type: "PROGRESS", n: context.n + 1000 })) },
    failed: { type: "final" },
  },
  output: ({ context }) => ({ n: context.n, receipt: context.receipt, note: context.note }),
});

export const orderMachine = setup({
  types: {
    context: {} as {
      items: number;
      waitMs: number;
      progress: number[];
      results: unknown[];
      shipped: unknown;
      pings: number;
    },
    input: {} as OrderInput,
    events: {} as
      | { type: "PROGRESS"; n: number }
      | { type: "PING" }
      | { type: `xstate.done.actor.${string}`; output: unknown },
  },
  actors: { item: placeholder, ship: suppliedByNode },
  guards: {
    isLast: ({ context }) => context.results.length + 1 >= context.items,
  },
}).createMachine({
  id: "order",
  version: "1",
  context: ({ input, spawn }) => {
    for (let n = 0; n < input.items; n += 1) {
      const note = input.note === undefined ? {} : { note: input.note };
      spawn("item", { id: `item-${n}`, input: { n, waitMs: input.waitMs ?? 30, ...note } } as never);
    }
    return { items: input.items, waitMs: input.waitMs ?? 30, progress: [], results: [], shipped: undefined, pings: 0 };
  },
  initial: "collecting",
  on: {
    PROGRESS: { actions: assign({ progress: ({ context, event }) => [...context.progress, event.n] }) },
    PING: { actions: assign({ pings: ({ context }) => context.pings + 1 }) },
  },
  states: {
    collecting: {
      on: {
        "xstate.done.actor.*": [
          {
            guard: "isLast",
            target: "shipping",
            actions: assign({
              results: ({ context, event }) => [...context.results, (event as { output: unknown }).output],
            }),
          },
          {
            actions: assign({
              results: ({ context, event }) => [...context.results, (event as { output: unknown }).output],
            }),
          },
        ],
      },
    },
    shipping: {
      invoke: {
        id: "ship",
        src: "ship",
        onDone: { target: "shipped", actions: assign({ shipped: ({ event }) => event.output }) },
        onError: { target: "lost" },
      },
    },
    shipped: { type: "final" },
    lost: { type: "final" },
  },
  output: ({ context }) => ({ results: context.results, progress: context.progress, shipped: context.shipped }),
});
