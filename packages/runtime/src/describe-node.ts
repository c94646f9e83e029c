import { RECORD_FORMAT } from "@holdfast/codec";
import type { Heartbeat } from "@holdfast/protocol";
import type { NodeServices } from "./cell-host.ts";
import type { PartitionOwner } from "./partition-owner.ts";
import type { RuntimeNodeOptions } from "./runtime-node-options.ts";

/** Jobs that one heartbeat names, at most. */
const MAX_CUSTODY = 512;

/** What a node says about itself in its heartbeat, besides who it is and how it is. */
export function describeNode(
  { pools, weight, build, readableFormats }: RuntimeNodeOptions,
  { types, jobs, settings }: NodeServices,
  owners: ReadonlyMap<string, PartitionOwner>,
  startedAtMs: number,
): Omit<Heartbeat, "v" | "name" | "incarnation" | "state"> {
  let actors = 0;
  for (const owner of owners.values()) actors += owner.cells.size;
  const heldTypes = [...types].filter(([, { definition }]) => definition.afterCrash === "hold").map(([type]) => type);
  const machines: Record<string, string> = {};
  for (const [type, { compiled }] of types)
    machines[type] = `${compiled.stamp.version}#${compiled.stamp.hash.slice(0, 12)}`;
  return {
    startedAtMs,
    pools: [...pools],
    ttlMs: settings.leaseTtlMs,
    ...(weight !== undefined && { weight }),
    ...(build !== undefined && { build }),
    types: [...types.keys()],
    ...(heldTypes.length > 0 && { heldTypes }),
    formats: [...(readableFormats ?? [RECORD_FORMAT])],
    machines,
    actors,
    jobs: jobs.size,
    custody: jobs.keysOutside(new Set(owners.keys())).slice(0, MAX_CUSTODY),
  };
}
