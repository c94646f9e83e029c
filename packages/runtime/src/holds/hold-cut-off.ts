import { holdActor } from "./hold-actor.ts";
import type { CellPlace } from "../cell-parts.ts";
import type { CellChildren } from "../cell-children.ts";

/**
 * Looks at an actor whose mailbox was read up to the claim: with jobs that were pending when the fleet was stopped it is held, as a whole,
 * until an operator lets it go on. What it owed by then has left, and what it was sent has been applied.
 *
 * @returns `held`: nothing of it may run; `later`: that could not be stored yet; `free`: it goes on
 */
export async function holdCutOff(
  { key, services, host }: Pick<CellPlace, "key" | "services" | "host">,
  children: Pick<CellChildren, "hasCutOffJobs">,
): Promise<"free" | "held" | "later"> {
  const { cutOff } = host;
  if (cutOff?.includes(key) !== true || !host.isCaughtUp) return "free";
  if (!children.hasCutOffJobs) {
    cutOff.judged(key);
    return "free";
  }
  if (!(await holdActor(services.quarantine, key, cutOff.why))) return "later";
  cutOff.judged(key);
  return "held";
}
