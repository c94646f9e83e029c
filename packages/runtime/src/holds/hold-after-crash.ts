import { parseActorKey, RuntimeFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import { inParallel } from "../rehydration/in-parallel.ts";
import { holdActor } from "./hold-actor.ts";

/**
 * Sets the actors with work aside whose type is to be held after a crash, before anything of them is loaded.
 * @param keys  actors with work
 * @param holder  incarnation that ended without having left
 * @throws RuntimeFault HF-4008 when that could not be stored: nothing of the partition may be taken up then
 */
export async function holdAfterCrash(services: NodeServices, keys: Iterable<string>, holder: string): Promise<void> {
  const isToBeHeld = (key: string): boolean =>
    services.types.get(parseActorKey(key).type)?.definition.afterCrash === "hold" &&
    services.quarantine.heldBack(key) === undefined;
  const reason = `its node ${holder} ended without having left`;
  await inParallel([...keys].filter(isToBeHeld), services.settings.rehydrateConcurrency, async (key) => {
    if (await holdActor(services.quarantine, key, reason)) return;
    throw new RuntimeFault("HF-4008", `${key}: that it is held could not be stored. Its partition is claimed again.`);
  });
}
