import { RuntimeFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import { publishOutcome } from "../job-outcome.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import { retryCell } from "../quarantine/retry-cell.ts";

/**
 * Ends the pending jobs of a held actor as cancelled, and lets it go on from there. Their outcomes are stored before the hold is lifted, so that
 * none of them starts, whoever carries this out again; an outcome that was stored before wins.
 * @returns how many jobs were pending; with none nothing is done
 * @throws RuntimeFault HF-2002, HF-2003 when its record cannot be read, HF-4xxx when NATS does not answer
 */
export async function cancelHeld(
  services: NodeServices,
  owner: PartitionOwner,
  key: string,
  reason: string,
): Promise<number> {
  const stored = await services.records.load(key);
  const record = stored === undefined ? undefined : services.codec.decodeRecord(stored.bytes).record;
  const children = Object.entries(record?.snapshot.children ?? {});
  const pending = children.filter(([, { kind, status }]) => kind === "job" && status === "active");
  if (record === undefined || pending.length === 0) return 0;
  const error = new RuntimeFault("HF-5203", reason);
  for (const [childId, child] of pending) {
    const job = { key: child.key, childId, actorKey: key, genesis: record.genesis, attempt: (child.attempt ?? 0) + 1 };
    await publishOutcome(services, job, { ok: false, error }, owner.signal);
  }
  await owner.advanceCursor(); // they have been handed over by now, and are offered before any job
  owner.signal.throwIfAborted();
  await services.quarantine.remove(key);
  await retryCell(owner, key);
  return pending.length;
}
