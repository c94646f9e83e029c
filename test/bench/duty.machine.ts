import { fromPromise, setup } from "xstate";

export interface DutyInput {
  /** Begins with its job; otherwise it sleeps until somebody calls. */
  readonly isAwake: boolean;
}

/** Sleeps without a timer, or has one job that runs. As small as a record gets: what is measured is the number of them. */
export const dutyMachine = setup({
  types: { context: {} as DutyInput, input: {} as DutyInput, events: {} as { type: "CALL" } },
  actors: {
    work: fromPromise(async (): Promise<void> => {
      throw new Error("supplied by the node");
    }),
  },
  guards: { isAwake: ({ context }) => context.isAwake },
}).createMachine({
  id: "duty",
  version: "1",
  context: ({ input }) => ({ isAwake: input.isAwake }),
  initial: "arriving",
  states: {
    arriving: { always: [{ guard: "isAwake", target: "working" }, { target: "sleeping" }] },
    sleeping: { tags: "idle", on: { CALL: "working" } },
    working: { invoke: { id: "work", src: "work", onDone: "done" } },
    done: { type: "final" },
  },
});
