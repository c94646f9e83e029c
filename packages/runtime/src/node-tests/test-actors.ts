import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { bossMachine, helperMachine } from "./boss.machine.ts";
import { deadlineMachine } from "./deadline.machine.ts";
import { errandMachine } from "./errand.machine.ts";
import type { JobDesk } from "./job-desk.ts";
import { restingMachine, tallyMachine } from "./tally.machine.ts";

/** The actor types of these tests. What they do outside arrives on the desk. */
export const testActors = (desk: JobDesk): readonly ActorDefinition[] => [
  defineActor({
    type: "tally",
    machine: tallyMachine,
    publicEvent: (emitted, { id }) => ({ kind: "task", name: ["tally", id, "told"], type: "told", data: emitted }),
  }),
  defineActor({ type: "resting", machine: restingMachine }),
  defineActor({ type: "deadline", machine: deadlineMachine }),
  defineActor({
    type: "errand",
    machine: errandMachine,
    jobs: {
      free: desk.job("free", { crashPolicy: "idempotent" }),
      keyed: desk.job("keyed", { crashPolicy: "dedupeKey" }),
      risky: desk.job("risky", { crashPolicy: "unsafe" }),
    },
  }),
  defineActor({
    type: "boss",
    machine: bossMachine,
    childActors: { helper: { type: "helper" }, stranger: { type: "stranger" } },
  }),
  defineActor({
    type: "helper",
    machine: helperMachine,
    jobs: { labour: desk.job("labour", { crashPolicy: "idempotent" }) },
  }),
];
