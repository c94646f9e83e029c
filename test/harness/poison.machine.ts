import { assign, setup } from "xstate";

/** What this build of the machine cannot take: it throws at BREAK, and its process dies at CRASH. A healed one takes both. */
export const vaultMachine = (isHealed: boolean) =>
  setup({
    types: {
      context: {} as { seen: unknown[] },
      events: {} as { type: "ADD" | "BREAK" | "CRASH"; n: unknown },
    },
    actions: {
      keep: assign({ seen: ({ context, event }) => [...context.seen, event.n] }),
      refuse: assign({
        seen: ({ context, event }) => {
          if (event.type === "CRASH" && !isHealed) process.kill(process.pid, "SIGKILL");
          if (!isHealed) throw new Error("this build cannot take it");
          return [...context.seen, event.n];
        },
      }),
    },
  }).createMachine({
    id: "vault",
    version: "1",
    context: { seen: [] },
    initial: "open",
    states: {
      open: {
        tags: "idle",
        on: { ADD: { actions: "keep" }, BREAK: { actions: "refuse" }, CRASH: { actions: "refuse" } },
      },
    },
  });
