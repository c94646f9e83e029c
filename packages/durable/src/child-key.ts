import { childActorId, formatActorKey, partitionOf, type ActorRecord, type PartitionScheme } from "@holdfast/protocol";
import type { ChildSource } from "./child-sources.ts";

/**
 * Key of a child: an actor key, or for jobs and hosts the bare id, which is their idempotency key and no address.
 * A function of (parent, genesis, child id, revision of the parent): another start of the same child id gets another key.
 */
export function childKey(
  scheme: PartitionScheme,
  parent: Pick<ActorRecord, "key" | "genesis">,
  source: ChildSource,
  childId: string,
  rev: number,
): string {
  const id = childActorId(parent.key, parent.genesis, childId, rev);
  if (source.kind !== "actor") return id;
  const { type = "", pool = "" } = source;
  return formatActorKey({ partition: partitionOf(scheme, pool, type, id), type, id });
}
