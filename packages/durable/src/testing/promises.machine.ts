import { assign, emit, fromPromise, setup } from "xstate";
import { typesOf, type Label } from "./scenario-types.ts";

export function promiseMachines(label: Label) {
  const load = fromPromise<{ got: unknown }, { k: unknown; fail?: boolean }>(async ({ input }) => {
    if (input.fail === true) throw new TypeError(`no ${String(input.k)}`);
    return { got: input.k };
  });
  const promises = setup({ types: typesOf<{ k: number; log: unknown[] }>({}), actors: { load } }).createMachine({
    id: "promises",
    initial: "first",
    context: ({ input }) => ({ k: Number(input["k"]), log: [] }),
    states: {
      first: {
        invoke: {
          src: "load",
          input: ({ context }) => ({ k: context.k }),
          onDone: {
            target: "second",
            actions: assign({ log: ({ context, event }) => [...context.log, event.output.got] }),
          },
        },
      },
      second: {
        invoke: {
          src: "load",
          id: "l2",
          input: ({ context }) => ({ k: context.k + 1, fail: true }),
          onDone: "never",
          onError: {
            target: "third",
            actions: assign({
              log: ({ context, event }) => [
                ...context.log,
                event.error instanceof Error ? `${event.error.name}:${event.error.message}` : "no error",
              ],
            }),
          },
        },
      },
      third: {
        invoke: {
          // Inline on purpose, which the types of setup() do not foresee.
          src: fromPromise(async () => "inline!") as unknown as "load",
          id: "inl",
          input: { k: 0 },
          onDone: { target: "fin", actions: assign({ log: ({ context, event }) => [...context.log, event.output] }) },
        },
      },
      never: {},
      fin: { type: "final" },
    },
    output: ({ context }) => context.log.join(),
  });
  // A wait with a reminder, an escalation and an expiry; the same invoke id is used again and again.
  const approval = setup({
    types: typesOf<{ n: number; sent: string[] }>({}),
    actors: {
      notify: fromPromise<string, { n: number }>(async ({ input }) => {
        label(`approval:notify:${input.n}`);
        return `sent${input.n}`;
      }),
    },
  }).createMachine({
    id: "approval",
    initial: "asking",
    context: { n: 1, sent: [] },
    states: {
      asking: {
        invoke: {
          src: "notify",
          id: "n",
          input: ({ context }) => ({ n: context.n }),
          onDone: { actions: assign({ sent: ({ context, event }) => [...context.sent, event.output] }) },
        },
        after: {
          1000: [
            {
              guard: ({ context }) => context.n < 3,
              target: "asking",
              reenter: true,
              actions: assign({ n: ({ context }) => context.n + 1 }),
            },
            { target: "expired" },
          ],
        },
        on: { APPROVE: { target: "ok", actions: emit({ type: "approved" }) }, REJECT: "no" },
      },
      ok: { type: "final" },
      no: { type: "final" },
      expired: { type: "final" },
    },
    output: ({ context, event }) => ({ sent: context.sent, ev: event.type }),
  });
  return { promises, approval };
}
