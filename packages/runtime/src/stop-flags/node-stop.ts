import { toPlainFault } from "@holdfast/protocol";
import type { JobTable } from "../job-table.ts";
import type { PartitionSet } from "../partition-set.ts";
import type { Telemetry } from "../ports/index.ts";
import type { StopFlag } from "./stop-flag.ts";

export interface NodeStopOptions {
  readonly flag: StopFlag;
  readonly jobs: Pick<JobTable, "keys" | "stop">;
  readonly partitions: Pick<PartitionSet, "giveUpAll">;
  readonly telemetry: Telemetry;
  /** Stores a heartbeat, if this node has joined. */
  readonly announce: () => Promise<unknown>;
  /** There may be something to claim again. */
  readonly moved: () => void;
}

/**
 * What a node does when the fleet is stopped: it aborts its jobs, gives every partition back, and claims none until the stop is lifted.
 *
 * Owns: whether what ran here was stopped. Does not own: the flag, the partitions.
 *   X1 by the time the heartbeat carries the revision, every job is aborted and no partition takes a message any more
 *   X2 nothing is claimed while something is still being given back
 */
export class NodeStop {
  readonly #options: NodeStopOptions;
  #obeyed = 0;
  #givingUp = 0;

  constructor(options: NodeStopOptions) {
    this.#options = options;
  }

  /** What the heartbeat says of it. */
  get told(): { readonly stopRevision?: number } {
    return this.#obeyed === 0 ? {} : { stopRevision: this.#obeyed };
  }

  /** Whether partitions may be claimed. */
  get mayClaim(): boolean {
    return !this.#options.flag.isRaised && this.#givingUp === 0;
  }

  /** The flag has changed. A cleared one stops what runs here, too: it was raised before, seen or not. */
  obey(): void {
    const { flag, jobs, partitions, telemetry, announce, moved } = this.#options;
    for (const key of jobs.keys()) jobs.stop(key, "the fleet is stopped");
    this.#givingUp += 1;
    void partitions
      .giveUpAll()
      .catch((error: unknown) =>
        telemetry.warn("fleet.stop-unfinished", { reason: toPlainFault(error, "HF-4001").message }),
      )
      .finally(() => {
        this.#givingUp -= 1;
        moved();
      });
    this.#obeyed = flag.state.revision; // X1
    void announce();
  }
}
