import { assign, createMachine, fromPromise, raise, sendTo, setup } from "xstate";
import { typesOf, type Label } from "./scenario-types.ts";

export function endingMachines(label: Label) {
  const fragile = createMachine({
    types: typesOf<object>({}),
    id: "fragile",
    context: {},
    on: {
      HIT: {
        actions: assign(() => {
          throw new RangeError("broke");
        }),
      },
    },
  });
  const errors = setup({ types: typesOf<{ why: unknown }>({}), actors: { fragile } }).createMachine({
    id: "errors",
    initial: "a",
    context: { why: null },
    states: {
      a: {
        invoke: {
          src: "fragile",
          id: "f",
          input: {},
          onError: {
            target: "b",
            actions: assign({ why: ({ event }) => (event.error instanceof Error ? event.error.message : "no error") }),
          },
        },
        on: { HIT: { actions: sendTo("f", { type: "HIT" }) } },
      },
      b: {
        on: {
          DIE: {
            actions: assign(() => {
              throw new Error("root died");
            }),
          },
        },
      },
    },
  });
  const finisher = setup({
    types: typesOf<{ n: number }>({}),
    actors: { never: fromPromise(() => new Promise<void>(() => undefined)) },
  }).createMachine({
    id: "finisher",
    initial: "a",
    context: { n: 0 },
    invoke: { src: "never", id: "nv" },
    exit: () => label("finisher:exit"),
    states: {
      a: {
        entry: raise({ type: "LATE" }, { delay: 5000, id: "late" }),
        always: { guard: ({ context }) => context.n >= 3, target: "b" },
        on: {
          INC: { actions: [assign({ n: ({ context }) => context.n + 1 }), raise({ type: "CHECK" })] },
          CHECK: { actions: () => label("finisher:check") },
        },
      },
      b: { initial: "x", states: { x: { always: "y" }, y: { type: "final" } }, onDone: "c" },
      c: { type: "final" },
    },
    output: ({ context }) => context.n,
  });
  return { fragile, errors, finisher };
}
