import { toPlainFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import { cancelHeld } from "./cancel-held.ts";

/** Ends the jobs of actors that were held for too long, as an operator's cancel does. One without pending jobs stays held. */
export async function expireHeld(services: NodeServices, owners: ReadonlyMap<string, PartitionOwner>): Promise<void> {
  const { quarantine, settings, time, telemetry } = services;
  for (const { key, firstMs } of quarantine.actorsUnder("HF-3106")) {
    const owner = owners.get(key.slice(0, key.indexOf(".")));
    if (owner?.isCaughtUp !== true || time.nowMs() - firstMs < settings.keepHeldMs) continue;
    const reason = `held for longer than ${settings.keepHeldMs} ms`;
    try {
      const jobs = await cancelHeld(services, owner, key, reason);
      if (jobs > 0) telemetry.warn("held.expired", { key, jobs, code: "HF-5203", reason });
    } catch (error) {
      telemetry.warn("held.not-expired", { key, reason: toPlainFault(error, "HF-4001").message });
    }
  }
}
