import type { Checkpoint } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { ScanEntry, StoredValue } from "../ports/index.ts";
import { readCheckpoint } from "./partition-checkpoint.ts";

/** What a takeover has to look after in one partition. */
export interface FoundWork {
  /** Records that need work; with their values where the scan read them. */
  readonly live: ReadonlyMap<string, StoredValue | undefined>;
  /** How many records the scan came by. */
  readonly scanned: number;
  readonly fromSeq: number;
  readonly barrierSeq: number;
  readonly readMs: number;
}

/** Memory that values of one scan may take; the records beyond it are read one by one. */
const VALUES_BYTES = 64 * 1024 * 1024;

/** A leader's answer about one record costs broker and node about as much as so many messages of a scan. */
const MESSAGES_PER_READ = 20;

interface Search {
  readonly owner: PartitionOwner;
  readonly live: Map<string, StoredValue | undefined>;
  readonly fromSeq: number;
  scanned: number;
}

/**
 * Finds the records with work in partitions of one shard that were claimed together: one barrier, one reader.
 * Each begins at its checkpoint, or at the start where there is none that counts.
 */
export async function findWork(
  services: NodeServices,
  owners: readonly PartitionOwner[],
): Promise<ReadonlyMap<PartitionOwner, FoundWork>> {
  const startedAtMs = services.clock.monotonicMs();
  const signal = whenAllAborted(owners);
  let searches = await Promise.all(owners.map((owner) => fromCheckpoint(services, owner)));
  let barrierSeq = await scan(services, searches, signal);
  if (searches.some(({ fromSeq }) => fromSeq > barrierSeq)) {
    // A checkpoint from beyond the end of the stream: it has lost its tail, and nobody knows what the sequences mean.
    services.telemetry.error("checkpoint.beyond-end", { partitions: owners.map(({ partition }) => partition) });
    searches = owners.map(fromStart);
    barrierSeq = await scan(services, searches, signal);
  }
  const readMs = services.clock.monotonicMs() - startedAtMs;
  return new Map(
    searches.map(({ owner, live, scanned, fromSeq }) => {
      owner.work.scanned(barrierSeq);
      owner.resting.isComplete = fromSeq === 0;
      return [owner, { live, scanned, fromSeq, barrierSeq, readMs }];
    }),
  );
}

const fromStart = (owner: PartitionOwner): Search => ({ owner, live: new Map(), fromSeq: 0, scanned: 0 });

async function fromCheckpoint(services: NodeServices, owner: PartitionOwner): Promise<Search> {
  const { storedSeq, usable } = await readCheckpoint(services, owner);
  owner.lastCheckpoint = { seq: storedSeq, text: "" };
  const search = { ...fromStart(owner), fromSeq: usable === undefined ? 0 : readFrom(usable) };
  for (const [key, seq] of usable?.live ?? []) {
    search.live.set(key, undefined);
    owner.work.seen(key, seq, true);
  }
  return search;
}

/**
 * Where to begin: behind the checkpoint's sequence, or before it where that saves more reads of single records than it costs messages read
 * in vain.
 */
function readFrom({ seq, live }: Checkpoint): number {
  let fromSeq = seq + 1;
  let spared = 0;
  for (const [, liveSeq] of live.toReversed()) {
    if (liveSeq > seq) continue;
    spared += 1;
    if (seq - liveSeq <= MESSAGES_PER_READ * spared) fromSeq = liveSeq;
  }
  return fromSeq;
}

function scan(services: NodeServices, searches: readonly Search[], signal: AbortSignal): Promise<number> {
  const byPartition = new Map(searches.map((search) => [search.owner.partition, search]));
  let bytesLeft = Math.min(VALUES_BYTES, services.flow.memory.limitBytes / 16); // every shard has a scan of its own
  const visit = ({ key, seq, needsWork, waits, bytes }: ScanEntry): void => {
    const search = byPartition.get(key.slice(0, key.indexOf(".")));
    if (search === undefined) return;
    search.scanned += 1;
    search.owner.work.seen(key, seq, needsWork);
    search.owner.resting.seen(key, seq, waits === true);
    if (!needsWork) {
      search.live.delete(key);
      return;
    }
    bytesLeft -= bytes?.length ?? 0;
    search.live.set(key, bytes === undefined || bytesLeft < 0 ? undefined : { bytes, seq });
  };
  const parts = searches.map(({ owner, fromSeq }) => ({ partition: owner.partition, fromSeq }));
  return services.records.scan({ parts, wantsValues: true, visit, signal });
}

/** One owner that was fenced meanwhile must not end the scan of the others. */
function whenAllAborted(owners: readonly PartitionOwner[]): AbortSignal {
  const all = new AbortController();
  let living = owners.length;
  const ended = (): void => {
    living -= 1;
    if (living === 0) all.abort(owners[0]?.signal.reason);
  };
  for (const { signal } of owners) {
    if (signal.aborted) ended();
    else signal.addEventListener("abort", ended, { once: true });
  }
  return all.signal;
}
