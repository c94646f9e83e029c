import { assign, emit, setup } from "xstate";

/** Collects what it is told, in order. Ignores HINT while it is shy. */
export const tallyMachine = setup({
  types: {
    context: {} as { seen: unknown[] },
    input: undefined as { seen?: unknown[] } | undefined,
    events: {} as
      | { type: "ADD"; n: unknown }
      | { type: "HINT" }
      | { type: "OPEN_UP" }
      | { type: "EMIT" }
      | { type: "END" },
    emitted: {} as { type: "told"; seen: number },
  },
}).createMachine({
  id: "tally",
  version: "1",
  context: ({ input }) => ({ seen: input?.seen ?? [] }),
  initial: "shy",
  on: {
    ADD: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.n] }) },
    EMIT: { actions: emit(({ context }) => ({ type: "told", seen: context.seen.length })) },
    END: ".ended",
  },
  states: {
    shy: { tags: "idle", on: { OPEN_UP: "open" }, after: { 3_600_000: "open" } },
    open: { tags: "idle", on: { HINT: { actions: assign({ seen: ({ context }) => [...context.seen, "hint"] }) } } },
    ended: { type: "final" },
  },
});

/** A tally that never sleeps with a timer in its record. */
export const restingMachine = setup({
  types: { context: {} as { seen: unknown[] }, events: {} as { type: "ADD"; n: unknown } },
}).createMachine({
  id: "resting",
  version: "1",
  context: { seen: [] },
  on: { ADD: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.n] }) } },
});
