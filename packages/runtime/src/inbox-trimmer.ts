import { allPartitionsOf, shardOf, type PartitionScheme } from "@holdfast/protocol";
import type { FleetView } from "./fleet-view.ts";
import { lowestHeld } from "./lowest-held.ts";
import type { Clock, MessageLog } from "./ports/index.ts";

/** A duplicate is recognised by the broker for this long; messages stay at least that long after they were considered. ms */
const MESSAGE_ID_WINDOW_MS = 600_000;

export interface InboxTrimmerOptions {
  readonly scheme: PartitionScheme;
  readonly view: FleetView;
  readonly log: MessageLog;
  readonly clock: Clock;
  readonly windowMs?: number;
}

interface Sample {
  readonly atMs: number;
  readonly cursor: number;
}

/**
 * Removes inbox messages that every partition of a stream has considered.
 *
 * Owns: when to trim. Does not own: the cursors (leases).
 *   I1 only below the lowest cursor that is stored in a lease, and below every message of a partition without one, of all partitions of the
 *      stream, of whatever pool (F54)
 *   I2 not before the broker may forget the ids of those messages
 *   I3 the owner of the stream's lowest partition that has one does it, nobody else
 */
export class InboxTrimmer {
  readonly #options: InboxTrimmerOptions;
  readonly #samples = new Map<number, Sample[]>();

  constructor(options: InboxTrimmerOptions) {
    this.#options = options;
  }

  /** @param owned  partitions of this node */
  async trim(owned: ReadonlySet<string>): Promise<void> {
    const { clock, log, scheme } = this.#options;
    const windowMs = this.#options.windowMs ?? MESSAGE_ID_WINDOW_MS;
    for (let shard = 0; shard < scheme.shards; shard += 1) {
      const lowest = lowestHeld(scheme, this.#options.view, shard);
      const cursor = lowest !== undefined && owned.has(lowest) ? await this.#lowestCursor(shard) : undefined;
      if (lowest === undefined || cursor === undefined) {
        this.#samples.delete(shard); // I3: whoever takes over begins a window of its own
        continue;
      }
      const now = clock.monotonicMs();
      const samples = this.#samples.get(shard) ?? [];
      samples.push({ atMs: now, cursor });
      const old = samples.findLastIndex(({ atMs }) => now - atMs >= windowMs); // I2
      const reached = samples[old];
      this.#samples.set(shard, old < 0 ? samples : samples.slice(old + 1));
      if (reached !== undefined && reached.cursor > 1) await log.trim("inbox", lowest, reached.cursor);
    }
  }

  /** I1. @returns undefined when leases of the stream's partitions speak of different streams, or none has one */
  async #lowestCursor(shard: number): Promise<number | undefined> {
    const { scheme, view } = this.#options;
    let lowest: number | undefined;
    let generation: string | undefined;
    for (const partition of allPartitionsOf(scheme)) {
      if (shardOf(scheme, partition) !== shard) continue;
      const lease = view.leases.get(partition)?.lease;
      if (lease === undefined) {
        lowest = Math.min(lowest ?? Number.POSITIVE_INFINITY, await this.#firstOf(partition));
        continue;
      }
      if (generation !== undefined && generation !== lease.generation) return undefined;
      generation = lease.generation;
      lowest = Math.min(lowest ?? lease.cursor, lease.cursor);
    }
    return generation === undefined ? undefined : lowest;
  }

  /** Of a partition that nobody has owned yet every message is unread. What comes later has a greater sequence than any cursor now. */
  async #firstOf(partition: string): Promise<number> {
    const [first] = await this.#options.log.fetch("inbox", `${partition}.>`, 0, 1);
    return first?.seq ?? Number.POSITIVE_INFINITY;
  }
}
