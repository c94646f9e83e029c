import { assign, setup } from "xstate";

/** A question with a deadline: whoever comes first, the answer or the deadline, decides. */
export const deadlineMachine = setup({
  types: {
    context: {} as { answer: unknown; noise: number; waitMs: number },
    input: undefined as { waitMs?: number } | undefined,
    events: {} as { type: "ANSWER"; text: string } | { type: "NOISE" },
  },
  delays: { deadline: ({ context }) => context.waitMs },
}).createMachine({
  id: "deadline",
  version: "1",
  context: ({ input }) => ({ answer: undefined, noise: 0, waitMs: input?.waitMs ?? 60_000 }),
  initial: "open",
  states: {
    open: {
      on: {
        ANSWER: { target: "answered", actions: assign({ answer: ({ event }) => event.text }) },
        NOISE: { actions: assign({ noise: ({ context }) => context.noise + 1 }) },
      },
      after: { deadline: "expired" },
    },
    answered: { tags: "idle" },
    expired: { tags: "idle" },
  },
});
