import { allPartitionsOf, shardOf, type PartitionScheme } from "@holdfast/protocol";
import type { FleetView } from "./fleet-view.ts";

/** First partition of a stream that somebody owns: its owner does what is to be done once per stream. */
export const lowestHeld = (scheme: PartitionScheme, view: FleetView, shard: number): string | undefined =>
  allPartitionsOf(scheme).find(
    (partition) => shardOf(scheme, partition) === shard && view.leases.get(partition)?.lease.state === "held",
  );
