import type { NodeLoad } from "@holdfast/protocol";
import type { Cursor } from "./cursor.ts";
import type { Clock, FleetRegistry, MessageLog } from "./ports/index.ts";

/** What the reporter looks at of a partition that is served here. */
export interface LoadedPartition {
  readonly cursor: Pick<Cursor, "pending" | "highest">;
  /** Its inbox is not read for want of memory. */
  readonly isPaused: boolean;
  readonly counters: { readonly committed: number };
}

export interface LoadReporterOptions {
  readonly node: string;
  readonly fleet: FleetRegistry;
  readonly log: MessageLog;
  readonly clock: Clock;
  readonly partitions: () => ReadonlyMap<string, LoadedPartition>;
  /** Partitions that share a stream. */
  readonly partitionsPerStream: number;
  readonly busyFrom: number;
  /** For how long what was told holds, ms. */
  readonly validMs: number;
}

const SHORTEST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;

/**
 * Tells senders from outside which partitions of this node have too much waiting.
 *
 * Owns: the key `busy.<node>`. Does not own: what senders do about it.
 *   B1 silent while nothing is busy: one write when something becomes so, one per turn while it is, one when it is over
 *   B2 a partition is busy from `busyFrom` waiting messages on, until half of them are left
 *   B3 it never refuses anything itself: what is stored is taken
 */
export class LoadReporter {
  readonly #options: LoadReporterOptions;
  readonly #busy = new Set<string>();
  #wasTold = false;
  #lastAtMs: number;
  #lastCommitted = 0;

  constructor(options: LoadReporterOptions) {
    this.#options = options;
    this.#lastAtMs = options.clock.monotonicMs();
  }

  /** Partitions that were busy at the last look. */
  get busy(): ReadonlySet<string> {
    return this.#busy;
  }

  async report(): Promise<void> {
    const { node, fleet, validMs } = this.#options;
    const perSecond = this.#rate();
    const waiting = await this.#look();
    if (waiting.size === 0 && !this.#wasTold) return; // B1
    const load: NodeLoad = {
      v: 1,
      node,
      validMs,
      partitions: Object.fromEntries(
        [...waiting].map(([partition, count]) => [
          partition,
          { waiting: count, retryAfterMs: retryAfterMs(count, perSecond / waiting.size) },
        ]),
      ),
    };
    const stored = await fleet.put(`busy.${node}`, new TextEncoder().encode(JSON.stringify(load)));
    this.#wasTold = waiting.size > 0 || stored === undefined;
  }

  /** B2. @returns busy partitions with what waits in each */
  async #look(): Promise<ReadonlyMap<string, number>> {
    const { partitions, busyFrom } = this.#options;
    const waiting = new Map<string, number>();
    for (const [partition, owner] of partitions()) {
      const count = owner.cursor.pending + (owner.isPaused ? await this.#unread(partition, owner) : 0);
      if (count < (this.#busy.has(partition) ? busyFrom / 2 : busyFrom)) continue;
      waiting.set(partition, count);
    }
    this.#busy.clear();
    for (const partition of waiting.keys()) this.#busy.add(partition);
    return waiting;
  }

  /** Messages that the stream keeps for it: its share of those that no partition of the stream has read. */
  async #unread(partition: string, { cursor }: LoadedPartition): Promise<number> {
    const { log, partitionsPerStream } = this.#options;
    const { lastSeq } = await log.position(partition);
    return Math.max(0, Math.ceil((lastSeq - cursor.highest) / partitionsPerStream));
  }

  /** Commits per second since the last look. */
  #rate(): number {
    const { clock, partitions } = this.#options;
    const now = clock.monotonicMs();
    let committed = 0;
    for (const { counters } of partitions().values()) committed += counters.committed;
    const seconds = Math.max(0.001, (now - this.#lastAtMs) / 1000);
    const rate = Math.max(0, committed - this.#lastCommitted) / seconds;
    this.#lastAtMs = now;
    this.#lastCommitted = committed;
    return rate;
  }
}

/** Time until about half of what waits was worked off. */
function retryAfterMs(waiting: number, perSecond: number): number {
  const ms = perSecond < 1 ? LONGEST_RETRY_MS : ((waiting / 2) * 1000) / perSecond;
  return Math.round(Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, ms)));
}
