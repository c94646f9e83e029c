import { JobQueue } from "./job-queue.ts";

interface Waiting {
  readonly kind: string;
  readonly actorKey: string;
  readonly granted: () => void;
}

/**
 * A number of slots that are held for long; who finds none waits.
 *
 * Owns: how many are taken, who waits. Does not own: what they are for.
 *   S1 roots take turns: however many of one root wait, another one has the second free slot at the latest
 *   S2 who runs already, e.g. since before a takeover, has a slot at once, and is counted: no further one is given until there are fewer again
 *   S3 a slot, or a place in the queue, is given back once, however often its holder says so
 */
export class FairSlots {
  readonly #slots: number;
  readonly #queue = new JobQueue<Waiting>();
  #taken = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** @returns gives back what it came to */
  take({ root, isRunning }: { readonly root: string; readonly isRunning: boolean }, granted: () => void): () => void {
    const waiting: Waiting = { kind: root, actorKey: root, granted: () => enter() };
    let state: "waiting" | "inside" | "gone" = "waiting";
    const enter = (): void => {
      state = "inside";
      this.#taken += 1;
      granted();
    };
    if (isRunning || (this.#taken < this.#slots && this.#queue.size === 0)) enter();
    else this.#queue.add(waiting);
    return () => {
      const was = state;
      state = "gone"; // S3
      if (was === "waiting") this.#queue.remove(waiting);
      if (was !== "inside") return;
      this.#taken -= 1;
      this.#next();
    };
  }

  #next(): void {
    while (this.#taken < this.#slots) {
      const next = this.#queue.take(() => true); // S1
      if (next === undefined) return;
      next.granted();
    }
  }
}
