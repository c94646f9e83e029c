import { HotActors } from "./hot-actors.ts";
import { JobLimits } from "./job-limits.ts";
import { Limiter } from "./limiter.ts";
import { heldLimitOf, MemoryBudget } from "./memory-budget.ts";
import type { Clock } from "./ports/index.ts";
import type { RuntimeSettings } from "./settings.ts";

/** What bounds the work of one node. One of each per process; everything that works or holds asks here. */
export interface FlowControl {
  readonly memory: MemoryBudget;
  readonly hot: HotActors;
  readonly jobs: JobLimits;
  /** Actors in the middle of a step. */
  readonly stepping: Limiter;
  /** Actors that are loaded for their work, not for a message: takeovers, sweeps, rechecks. One at a time when too much is held. */
  readonly rehydrating: Limiter;
}

export function createFlowControl(settings: RuntimeSettings, clock: Clock): FlowControl {
  const memory = new MemoryBudget(heldLimitOf(settings.memoryMb));
  return {
    memory,
    hot: new HotActors(memory),
    jobs: new JobLimits({ node: settings.nodeJobConcurrency, providers: settings.providerConcurrency }),
    stepping: new Limiter({
      clock,
      slots: () => settings.stepConcurrency,
      weightLimit: memory.limitBytes / 4,
    }),
    rehydrating: new Limiter({
      clock,
      slots: () => (memory.total > memory.limitBytes ? 1 : settings.rehydrateConcurrency),
    }),
  };
}
