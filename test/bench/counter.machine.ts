import { assign, setup } from "xstate";

/** One line of what the counter carries along: content nobody reads, so that a record has an ordinary size. */
export interface StockLine {
  readonly sku: string;
  readonly title: string;
  readonly quantity: number;
}

export interface CounterInput {
  readonly owner: string;
  readonly lines: readonly StockLine[];
}

/** A small ordinary machine: two states, a guard, an assign, a context of about 1 KiB. `count` is the number of events applied. */
export const counterMachine = setup({
  types: {
    context: {} as { owner: string; count: number; total: number; lines: readonly StockLine[] },
    input: {} as CounterInput,
    events: {} as { type: "ADD"; amount: number } | { type: "CLOSE" },
  },
  guards: { isPositive: ({ event }) => event.type === "ADD" && event.amount > 0 },
  actions: {
    add: assign({
      count: ({ context }) => context.count + 1,
      total: ({ context, event }) => context.total + (event.type === "ADD" ? event.amount : 0),
    }),
  },
}).createMachine({
  id: "counter",
  version: "1",
  context: ({ input }) => ({ owner: input.owner, count: 0, total: 0, lines: input.lines }),
  initial: "even",
  states: {
    even: { tags: "idle", on: { ADD: { guard: "isPositive", target: "odd", actions: "add" }, CLOSE: "closed" } },
    odd: { tags: "idle", on: { ADD: { guard: "isPositive", target: "even", actions: "add" }, CLOSE: "closed" } },
    closed: { type: "final" },
  },
});
