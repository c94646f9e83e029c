import { assign, createMachine, raise, sendParent, sendTo, setup, spawnChild, stopChild } from "xstate";
import { typesOf } from "./scenario-types.ts";

/** Writes down every event it is shown. */
export const recorder = setup({
  types: typesOf<{ seen: string[] }>({}),
  actors: { kid: createMachine({ id: "kid" }) },
  actions: {
    note: assign({ seen: ({ context, event }) => [...context.seen, String(event["mark"] ?? event.type)] }),
  },
}).createMachine({
  id: "recorder",
  initial: "on",
  context: { seen: [] },
  states: { on: { on: { END: "off" } }, off: { type: "final" } },
  on: {
    SPAWN: { actions: ["note", spawnChild("kid", { id: "k" })] },
    DROP: { actions: ["note", stopChild("k")] },
    ARM: { actions: ["note", raise({ type: "TICK" }, { delay: 10, id: "t" })] },
    TELL: { actions: ["note", sendParent({ type: "UP" })] },
    KID: { guard: ({ event }) => "mark" in event, actions: ["note", sendTo(({ self }) => self, { type: "ME" })] },
    "xstate.done.actor.k": { actions: assign({ seen: ({ context }) => [...context.seen, "k:done"] }) },
    "*": { actions: "note" },
  },
});
