import { assign, cancel, createMachine, raise, setup } from "xstate";
import { typesOf, type Label } from "./scenario-types.ts";

export function timeMachines(label: Label) {
  const light = createMachine({
    types: typesOf<{ laps: number }>({}),
    id: "light",
    initial: "green",
    context: { laps: 0 },
    states: {
      green: {
        entry: () => label("light:green"),
        after: { 1000: "yellow" },
        on: { RESET: { target: "green", reenter: true } },
      },
      yellow: { after: { 200: "red" } },
      red: { after: { 500: { target: "green", actions: assign({ laps: ({ context }) => context.laps + 1 }) } } },
    },
  });
  const delayed = setup({
    types: typesOf<{ p: number; n: number }>({}),
    delays: { patience: ({ context }) => context.p },
  }).createMachine({
    id: "delayed",
    initial: "a",
    context: { p: 300, n: 0 },
    states: {
      a: {
        on: {
          ARM: {
            actions: [
              raise({ type: "BOOM" }, { delay: "patience", id: "boom" }),
              raise({ type: "SOFT" }, { delay: 100 }),
            ],
          },
          DISARM: { actions: cancel("boom") },
          SOFT: { actions: assign({ n: ({ context }) => context.n + 1 }) },
          BOOM: "b",
        },
        after: { patience: { actions: assign({ n: ({ context }) => context.n + 10 }) } },
      },
      b: { entry: () => label("delayed:b") },
    },
  });
  const hist = createMachine({
    id: "hist",
    initial: "on",
    states: {
      on: {
        initial: "low",
        states: {
          low: { initial: "p", states: { p: { on: { N: "q" } }, q: {} } },
          high: {},
          deep: { type: "history", history: "deep" },
          shallow: { type: "history" },
        },
        on: { OFF: "off", UP: ".high" },
      },
      off: { on: { DEEP: "on.deep", SHALLOW: "on.shallow" } },
    },
  });
  return { light, delayed, hist };
}
