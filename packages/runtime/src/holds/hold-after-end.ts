import { parseActorKey, RuntimeFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import { inParallel } from "../rehydration/in-parallel.ts";
import { holdActor } from "./hold-actor.ts";

/** Who of a partition is to be set aside for how its former owner ended. */
export interface HoldOrder {
  readonly reason: string;
  /** Everybody; else those whose type is to be held then. */
  readonly isForAll: boolean;
}

/**
 * Sets actors with work aside, before anything of them is loaded.
 * @param keys  actors with work
 * @throws RuntimeFault HF-4008 when that could not be stored: nothing of the partition may be taken up then
 */
export async function holdAfterEnd(
  services: NodeServices,
  keys: Iterable<string>,
  { reason, isForAll }: HoldOrder,
): Promise<void> {
  const isToBeHeld = (key: string): boolean =>
    (isForAll || services.types.get(parseActorKey(key).type)?.definition.afterCrash === "hold") &&
    services.quarantine.heldBack(key) === undefined;
  await inParallel([...keys].filter(isToBeHeld), services.settings.rehydrateConcurrency, async (key) => {
    if (await holdActor(services.quarantine, key, reason)) return;
    throw new RuntimeFault("HF-4008", `${key}: that it is held could not be stored. Its partition is claimed again.`);
  });
}
