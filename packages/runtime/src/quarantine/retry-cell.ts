import type { PartitionOwner } from "../partition-owner.ts";

/**
 * Loads an actor anew and offers it everything that was set aside.
 * @param skip  mark of a message that is passed over then
 */
export async function retryCell(
  owner: PartitionOwner,
  key: string,
  skip?: string,
): Promise<{ readonly isSkipped: boolean }> {
  const cell = owner.cellOf(key);
  if (cell === undefined) return { isSkipped: false };
  if (skip !== undefined) cell.quarantine.skip(skip);
  // All at once: a cell that has nothing to do may leave memory. The last one goes behind what was offered again.
  await Promise.all([cell.rehydrate(undefined, true), cell.rehydrate()]);
  return { isSkipped: skip !== undefined && !cell.quarantine.unskip(skip) };
}
