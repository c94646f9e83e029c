import { isTerminal, RuntimeFault, type ActorKey, type ActorRecord, type ParentLink } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { RuntimeSettings } from "../settings.ts";

const MAX_FRESH_MS = 3_600_000;

/**
 * Age from which a start says nothing by itself any more, ms: the tombstone of what it started may have gone meanwhile.
 * Half of the time that tombstones certainly stay, and never more than an hour.
 */
export const freshStartMs = ({ keepEndedMs, keepTombstoneMs }: RuntimeSettings): number =>
  Math.min(MAX_FRESH_MS, (keepEndedMs + keepTombstoneMs) / 2);

/** Whether a parent still waits for a child that has no record and whose start is old (F9). `unknown`: the parent cannot be read here. */
export async function judgeOldStart(
  services: NodeServices,
  key: ActorKey,
  parent: ParentLink,
): Promise<"wanted" | "unwanted" | "unknown"> {
  try {
    const record = await loadRecord(services, parent.key);
    const isWanted = record?.genesis === parent.genesis && awaits(record, key, parent.childId);
    return isWanted ? "wanted" : "unwanted";
  } catch (error) {
    if (error instanceof RuntimeFault && error.code.startsWith("HF-2")) return "unknown";
    throw error; // nobody answered: it is tried again
  }
}

/** Whether a record still needs what became of a child: it has not settled, or its start has not left. */
export function awaits(record: ActorRecord, childKey: ActorKey, childId: string): boolean {
  if (record.outbox.some((effect) => effect.kind === "start" && effect.to === childKey)) return true;
  const entry = Object.hasOwn(record.snapshot.children, childId) ? record.snapshot.children[childId] : undefined;
  return !isTerminal(record.status) && entry?.key === childKey && entry.status === "active";
}

export async function loadRecord({ records, codec }: NodeServices, key: ActorKey): Promise<ActorRecord | undefined> {
  const stored = await records.load(key);
  return stored === undefined ? undefined : codec.decodeRecord(stored.bytes).record;
}

export const unwantedStart = (key: ActorKey): RuntimeFault =>
  new RuntimeFault(
    "HF-3009",
    `${key}: its start is old, and its parent does not wait for it any more. Start another child.`,
  );
