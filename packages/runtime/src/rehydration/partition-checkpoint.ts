import { Checkpoint, toPlainFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";

/** What was left in the place of a partition's checkpoint. */
export interface FoundCheckpoint {
  /** Sequence of the stored value, 0 when there is none: what the next one replaces. */
  readonly storedSeq: number;
  /** Absent: everything has to be read. */
  readonly usable?: Checkpoint;
}

/**
 * Reads the checkpoint of the former owner.
 *
 * It counts only when the epoch before ours wrote it, for the records' present generation: an older one says nothing about what came after
 * it, and only the last owner knew what it had in flight (F8).
 */
export async function readCheckpoint(services: NodeServices, owner: PartitionOwner): Promise<FoundCheckpoint> {
  const { records, telemetry } = services;
  const { partition } = owner;
  try {
    const stored = await records.loadCheckpoint(partition);
    if (stored === undefined) return { storedSeq: 0 };
    const found = tryCheckpoint(stored.bytes);
    const isLast = found?.epoch === owner.epoch - 1 && found.generation === records.generation(partition);
    if (isLast && found.partition === partition) return { storedSeq: stored.seq, usable: found };
    telemetry.info("checkpoint.passed-over", { partition, epoch: owner.epoch, of: found?.epoch ?? "unreadable" });
    return { storedSeq: stored.seq };
  } catch (error) {
    telemetry.warn("checkpoint.unread", { partition, reason: toPlainFault(error, "HF-4001").message });
    return { storedSeq: 0 };
  }
}

/** Stores what the owner knows of the work in its partition. Never fails: a successor without it reads everything. */
export async function writeCheckpoint(services: NodeServices, owner: PartitionOwner): Promise<void> {
  const { records, random, telemetry } = services;
  const { partition, epoch, work } = owner;
  const summary = work.summary();
  if (summary.seq === 0) return; // a full scan needs no help
  const token = random.hex(8);
  const checkpoint: Checkpoint = {
    v: 1,
    partition,
    epoch,
    generation: records.generation(partition),
    seq: summary.seq,
    live: summary.live.map(([key, seq]): [string, number] => [key, seq]),
    unlisted: summary.unlisted,
    token,
  };
  const text = JSON.stringify({ ...checkpoint, token: "" });
  if (owner.lastCheckpoint.text === text) return;
  try {
    const bytes = new TextEncoder().encode(JSON.stringify(checkpoint));
    const outcome = await records.storeCheckpoint(partition, bytes, owner.lastCheckpoint.seq, token);
    if (outcome.kind === "committed") {
      owner.lastCheckpoint = { seq: outcome.seq, text };
      return;
    }
    telemetry.info("checkpoint.not-stored", { partition, epoch, outcome: outcome.kind });
    const found = await records.loadCheckpoint(partition);
    const foundEpoch = found === undefined ? 0 : (tryCheckpoint(found.bytes)?.epoch ?? 0);
    if (foundEpoch > epoch) owner.fenced(foundEpoch);
    else owner.lastCheckpoint = { seq: found?.seq ?? 0, text: "" }; // a former owner's, or ours: the next one replaces it
  } catch (error) {
    telemetry.warn("checkpoint.not-stored", { partition, epoch, reason: toPlainFault(error, "HF-4001").message });
  }
}

function tryCheckpoint(bytes: Uint8Array): Checkpoint | undefined {
  try {
    return Checkpoint.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // no JSON
  }
}
