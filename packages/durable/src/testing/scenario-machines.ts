// Ordinary XState v5 machines; nothing here knows about durability.
import type { AnyActorLogic } from "xstate";
import { actionMachines } from "./actions.machine.ts";
import { childMachines } from "./children.machine.ts";
import { endingMachines } from "./endings.machine.ts";
import { familyMachines } from "./family.machine.ts";
import { promiseMachines } from "./promises.machine.ts";
import type { Label } from "./scenario-types.ts";
import { timeMachines } from "./timing.machine.ts";

/**
 * The logic of the differential tests by name, roots and children alike. `label` is called by actions and promises, so that what
 * ran, and in which order, can be compared.
 */
export const scenarioMachines = (label: Label): Readonly<Record<string, AnyActorLogic>> => ({
  ...timeMachines(label),
  ...actionMachines(label),
  ...promiseMachines(label),
  ...familyMachines(label),
  ...childMachines(),
  ...endingMachines(label),
});
