import { assign, setup } from "xstate";

/** What makes it throw is in the test's hands, as a bug that another build does not have. */
export interface Fragility {
  breaks: boolean;
}

/** Collects what it is told; throws while it is fragile at anything that says so, and when its deadline comes. */
export const fragileMachine = (fragility: Fragility) =>
  setup({
    types: {
      context: {} as { seen: unknown[] },
      events: {} as { type: "ADD"; n: unknown } | { type: "BREAK"; n: unknown } | { type: "WAIT" },
    },
    actions: {
      breakOrKeep: assign({
        seen: ({ context, event }) => {
          if (fragility.breaks) throw new Error("cannot take it\nwith a second line");
          return [...context.seen, "n" in event ? event.n : event.type];
        },
      }),
    },
  }).createMachine({
    id: "fragile",
    version: "1",
    context: { seen: [] },
    initial: "calm",
    on: {
      ADD: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.n] }) },
      BREAK: { actions: "breakOrKeep" },
    },
    states: {
      calm: { tags: "idle", on: { WAIT: "waiting" } },
      waiting: { after: { 1000: { target: "calm", actions: "breakOrKeep" } } },
    },
  });
