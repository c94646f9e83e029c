import type { MemoryBudget } from "./memory-budget.ts";

/** An actor in memory. */
export interface HotActor {
  /** Leaves memory if nothing of it happens here, or does first what it takes to leave: then it comes to rest again. */
  leave(): void;
}

/** Actors looked at when one comes to rest: eviction keeps up, and is never a burst. */
const LOOKS = 16;

/**
 * Actors at rest that stay decoded, the longest unused first.
 *
 * Owns: their order. Does not own: the actors, the budget.
 *   H1 while memory is tight the longest unused ones leave; otherwise they stay, and their next message costs no read
 */
export class HotActors {
  readonly #budget: MemoryBudget;
  readonly #resting = new Set<HotActor>();

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  get size(): number {
    return this.#resting.size;
  }

  /** It has nothing to do for now. */
  cameToRest(actor: HotActor): void {
    this.#resting.delete(actor);
    this.#resting.add(actor);
    // H1. Asked first: to find its first element, a set passes over the places of all that have left since it was built anew.
    if (!this.#budget.isTight) return;
    let looks = 0;
    for (const oldest of this.#resting) {
      if (!this.#budget.isTight || looks >= LOOKS) return;
      looks += 1;
      this.#resting.delete(oldest); // whoever cannot leave comes back when it comes to rest the next time
      oldest.leave();
    }
  }

  /** It works again, or is gone. */
  left(actor: HotActor): void {
    this.#resting.delete(actor);
  }
}
