import type { PartitionScheme } from "@holdfast/protocol";
import type { FleetView } from "./fleet-view.ts";
import { lowestHeld } from "./lowest-held.ts";
import type { StuckReport } from "./partition-set.ts";
import type { MessageLog, Telemetry } from "./ports/index.ts";

export interface InboxFillWatchOptions {
  readonly scheme: PartitionScheme;
  readonly view: FleetView;
  readonly log: Pick<MessageLog, "position">;
  readonly telemetry: Telemetry;
}

const ALARM_FROM = 0.7;
const OVER_BELOW = 0.6;

/**
 * The alarm before an inbox stream is full and refuses its senders (F12).
 *
 * Owns: the alarms. Does not own: trimming (InboxTrimmer).
 *   W1 the owner of the stream's lowest partition that has one raises it, nobody else
 *   W2 from 70 % on, until less than 60 % are left
 */
export class InboxFillWatch {
  readonly #options: InboxFillWatchOptions;
  /** Shard → its alarm. */
  readonly #alarms = new Map<number, StuckReport>();

  constructor(options: InboxFillWatchOptions) {
    this.#options = options;
  }

  /** Alarms that are on this node to raise. */
  reports(): readonly StuckReport[] {
    return [...this.#alarms.values()];
  }

  /** @param owned  partitions of this node */
  async look(owned: ReadonlySet<string>): Promise<void> {
    const { scheme, view, log } = this.#options;
    for (let shard = 0; shard < scheme.shards; shard += 1) {
      const partition = lowestHeld(scheme, view, shard);
      if (partition === undefined || !owned.has(partition)) this.#alarms.delete(shard); // W1
      else this.#judge(shard, partition, (await log.position(partition)).fill ?? 0);
    }
  }

  /** W2. */
  #judge(shard: number, partition: string, fill: number): void {
    const { telemetry } = this.#options;
    const isAlarmed = this.#alarms.has(shard);
    if (!isAlarmed && fill >= ALARM_FROM) {
      const why = `the inbox stream of shard ${shard} is more than 70 % full; a full one refuses its senders`;
      this.#alarms.set(shard, { key: partition, kind: "inbox-filling", why });
      telemetry.error("inbox.filling", { shard, partition, percent: Math.round(fill * 100) });
    } else if (isAlarmed && fill < OVER_BELOW) {
      this.#alarms.delete(shard);
      telemetry.info("inbox.relieved", { shard, partition, percent: Math.round(fill * 100) });
    }
  }
}
