import { assign, sendParent, sendTo, setup } from "xstate";
import { typesOf, type Label } from "./scenario-types.ts";

export function familyMachines(label: Label) {
  const grand = setup({ types: typesOf<{ n: number }>({}) }).createMachine({
    id: "grand",
    initial: "g1",
    context: ({ input }) => ({ n: Number(input["n"]) }),
    states: {
      g1: {
        entry: () => label("grand:g1"),
        after: { 100: { actions: sendParent(({ context }) => ({ type: "TICK", n: context.n })), target: "g2" } },
      },
      g2: { on: { STOPIT: "g3" } },
      g3: { type: "final" },
    },
    output: ({ context }) => context.n * 10,
  });
  const mid = setup({ types: typesOf<{ seen: string[] }>({}), actors: { grand } }).createMachine({
    id: "mid",
    initial: "m1",
    context: { seen: [] },
    states: {
      m1: {
        entry: sendTo("g", { type: "EARLY" }),
        invoke: {
          src: "grand",
          id: "g",
          input: { n: 4 },
          onDone: {
            target: "m2",
            actions: assign({
              seen: ({ context, event }) => [...context.seen, `gdone${JSON.stringify(event.output)}`],
            }),
          },
        },
        on: {
          TICK: {
            actions: [
              assign({ seen: ({ context, event }) => [...context.seen, `tick${String(event["n"])}`] }),
              sendParent({ type: "MID_TICK" }),
              sendTo("g", { type: "STOPIT" }),
            ],
          },
        },
      },
      m2: { type: "final" },
    },
    output: ({ context }) => context.seen,
  });
  const nested = setup({ types: typesOf<{ r: unknown; ticks: number }>({}), actors: { mid } }).createMachine({
    id: "nested",
    initial: "a",
    context: { r: null, ticks: 0 },
    states: {
      a: {
        invoke: {
          src: "mid",
          id: "mid",
          input: {},
          onDone: { target: "b", actions: assign({ r: ({ event }) => event.output }) },
        },
        on: { MID_TICK: { actions: assign({ ticks: ({ context }) => context.ticks + 1 }) } },
      },
      b: { type: "final" },
    },
    output: ({ context }) => context.r,
  });
  return { grand, mid, nested };
}
