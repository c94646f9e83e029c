import { assign, setup } from "xstate";

/** Holds what it is given until it is emptied. */
export const crateMachine = setup({
  types: {
    context: {} as { held: string[] },
    events: {} as { type: "PUT"; value: string } | { type: "EMPTY" },
  },
}).createMachine({
  id: "crate",
  version: "1",
  context: { held: [] },
  on: {
    PUT: { actions: assign({ held: ({ context, event }) => [...context.held, event.value] }) },
    EMPTY: { actions: assign({ held: [] }) },
  },
});
