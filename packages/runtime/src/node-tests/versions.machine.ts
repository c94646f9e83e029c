import { assign, setup } from "xstate";

/** What another build may have under the name of the resting machine. */
export const restingVersion = (id: string, version: string, states: readonly string[]) =>
  setup({
    types: { context: {} as { seen: unknown[] }, events: {} as { type: "ADD"; n: unknown } },
  }).createMachine({
    id,
    version,
    context: { seen: [] },
    on: { ADD: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.n] }) } },
    initial: states[0] ?? "",
    states: Object.fromEntries(states.map((state) => [state, {}])),
  });

/** A build that expects of a context what the former one never wrote. */
export const brittleVersion = setup({
  types: { context: {} as { seen: unknown[]; patience: { ms: number } } },
  delays: { patience: ({ context }) => context.patience.ms },
}).createMachine({
  id: "resting",
  version: "2",
  context: { seen: [], patience: { ms: 1000 } },
  initial: "one",
  states: { one: { after: { patience: {} } } },
});
