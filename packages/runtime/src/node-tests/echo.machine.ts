import { assign, setup } from "xstate";

/** Its custom action sends by hand, as ordinary XState does. */
export const echoMachine = setup({
  types: {
    context: {} as { heard: unknown[] },
    events: {} as { type: "GO" } | { type: "HEARD"; n: number } | { type: "STRAY" },
  },
  actions: {
    speak: ({ self }) => {
      for (const n of [1, 2]) self.send({ type: "HEARD", n });
    },
    stray: ({ system }) => {
      system.get("nobody").send({ type: "HEARD", n: 0 });
    },
    hear: assign({ heard: ({ context, event }) => [...context.heard, event.type === "HEARD" ? event.n : undefined] }),
  },
}).createMachine({
  id: "echo",
  version: "1",
  context: { heard: [] },
  on: { GO: { actions: "speak" }, STRAY: { actions: "stray" }, HEARD: { actions: "hear" } },
});
