import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { BlobSweepStore } from "../ports/index.ts";

export interface SweepCounts {
  /** Blobs that are old enough to be looked at. */
  readonly old: number;
  readonly removed: number;
  /** Where the next sweep begins: what is named for long must not keep the others from their turn. */
  readonly nextSeq: number;
}

const MAX_AT_ONCE = 1000;

/**
 * Removes old blobs that nothing names: mark and sweep (F6). The writer never removes.
 *   S1 what is young stays, named or not: a blob is stored before what names it. One that is put again becomes young again
 *   S2 first the candidates, then the marks: what is named for the first time in between was put again, and is another copy
 *   S3 a mark that is not whole sweeps nothing
 */
export async function sweepBlobs(
  { settings, time }: NodeServices,
  store: BlobSweepStore,
  owner: PartitionOwner,
  fromSeq: number,
): Promise<SweepCounts> {
  const old = await store.olderThan(time.nowMs() - settings.keepBlobMs, fromSeq, MAX_AT_ONCE, owner.signal); // S1
  const nextSeq = old.length < MAX_AT_ONCE ? 1 : (old.at(-1)?.seq ?? 0) + 1;
  if (old.length === 0) return { old: 0, removed: 0, nextSeq };
  const candidates = new Map(old.map((blob) => [blob.sha256, blob]));
  const prefixes = new Map<string, string>();
  await store.named((prefix) => {
    if (prefixes.size === 0) for (const { sha256 } of old) prefixes.set(sha256.slice(0, prefix.length), sha256);
    const named = prefixes.get(prefix);
    if (named !== undefined) candidates.delete(named);
  }, owner.signal); // S3: it throws
  let removed = 0;
  for (const blob of candidates.values()) {
    if (!owner.mayStartEffects()) break;
    await store.remove(blob);
    removed += 1;
  }
  return { old: old.length, removed, nextSeq };
}
