import type { HoldfastClient } from "@holdfast/client";
import type { StartedProcess } from "./child-process.ts";
import { waitUntil } from "./wait-until.ts";

/**
 * Waits until nodes serve everything between them: every lease is held by one of them, and taken up.
 *
 * @param nodes  asked at every look: they may come and go meanwhile
 */
export async function untilServing(
  { read, manifest }: HoldfastClient,
  nodes: () => Iterable<StartedProcess>,
  options: { readonly timeoutMs?: number; readonly tickMs?: number; readonly dump?: () => unknown } = {},
): Promise<void> {
  // A node that may die while it starts says its name before it has an incarnation.
  const holds = (holder: string): boolean =>
    Array.from(nodes()).some(({ hello: { incarnation, node } }) =>
      incarnation === undefined ? holder.split(":")[0] === node : holder === incarnation,
    );
  const partitions = Object.values(manifest.pools).reduce((sum, size) => sum + size, 0);
  await waitUntil(
    "the nodes serve every partition",
    async () => {
      const { leases, reports } = await read.fleet();
      const served = leases.filter(
        ({ state, holder, partition, epoch }) =>
          state === "held" &&
          holds(holder) &&
          reports.some((report) => report.partition === partition && report.epoch === epoch),
      );
      return served.length === partitions;
    },
    { timeoutMs: 30_000, ...options },
  );
}
