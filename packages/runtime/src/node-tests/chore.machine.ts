import { assign, fromPromise, setup } from "xstate";

const suppliedByNode = fromPromise(async (): Promise<unknown> => {
  throw new Error("supplied by the node");
});

/** One job with a deadline, that may be called off. */
export const choreMachine = setup({
  types: {
    context: {} as { result: unknown; failure: string | undefined },
    events: {} as { type: "CALL_OFF" },
  },
  actors: { labour: suppliedByNode },
}).createMachine({
  id: "chore",
  version: "1",
  context: { result: undefined, failure: undefined },
  initial: "working",
  states: {
    working: {
      after: { 60_000: "expired" },
      on: { CALL_OFF: "calledOff" },
      invoke: {
        id: "labour",
        src: "labour",
        onDone: { target: "done", actions: assign({ result: ({ event }) => event.output }) },
        onError: {
          target: "failed",
          actions: assign({ failure: ({ event }) => (event.error as { code?: string }).code }),
        },
      },
    },
    done: { type: "final" },
    failed: { tags: "idle" },
    expired: { tags: "idle" },
    calledOff: { tags: "idle" },
  },
});
