import { assign, emit, enqueueActions, fromPromise, log, raise, setup } from "xstate";
import { typesOf, type Label } from "./scenario-types.ts";

export function actionMachines(label: Label) {
  const acts = setup({
    types: typesOf<{ n: number }>({}),
    actions: {
      named: () => label("acts:named"),
      withP: (_, params: object) => label(`acts:withP:${JSON.stringify(params)}`),
      ctx: ({ context, event }) => label(`acts:ctx:${context.n}:${event.type}`),
    },
    guards: { big: ({ context }) => context.n > 1 },
  }).createMachine({
    id: "acts",
    initial: "a",
    context: { n: 0 },
    states: {
      a: {
        entry: [
          "named",
          function hello() {
            label("acts:hello");
          },
        ],
        exit: { type: "withP", params: ({ context }) => ({ n: context.n }) },
        on: {
          GO: {
            actions: [
              "ctx",
              assign({ n: ({ context }) => context.n + 1 }),
              "ctx",
              assign({ n: ({ context }) => context.n + 1 }),
              "ctx",
              emit(({ context }) => ({ type: "tick", n: context.n })),
              log("x"),
              raise({ type: "INNER" }),
            ],
          },
          INNER: { guard: "big", target: "b" },
        },
      },
      b: {
        entry: enqueueActions(({ enqueue, check }) => {
          if (!check("big")) return;
          enqueue("named");
          enqueue.assign({ n: 100 });
          enqueue({ type: "withP", params: { k: 1 } });
          enqueue.emit({ type: "done" });
        }),
      },
    },
  });
  const par = setup({
    types: typesOf<{ out: unknown; a: number }>({}),
    actors: { job: fromPromise<number, number>(async ({ input }) => input * 2) },
  }).createMachine({
    id: "par",
    type: "parallel",
    context: { out: null, a: 0 },
    output: ({ context }) => ({ out: context.out, a: context.a }),
    states: {
      A: {
        initial: "a1",
        states: {
          a1: { on: { E: { target: "a2", actions: assign({ a: 1 }) } } },
          a2: { after: { 50: "a3" } },
          a3: { type: "final" },
        },
      },
      B: {
        initial: "b1",
        states: {
          b1: {
            invoke: {
              src: "job",
              id: "job",
              input: 21,
              onDone: { target: "b2", actions: assign({ out: ({ event }) => event.output }) },
            },
          },
          b2: { on: { F: "b3" } },
          b3: { type: "final" },
        },
      },
    },
  });
  return { acts, par };
}
