import { JobQueue } from "./job-queue.ts";

interface Holder {
  /** Its root, as the queue names it. */
  readonly kind: string;
  readonly actorKey: string;
  readonly granted: () => void;
  state: "waiting" | "inside" | "gone";
}

/**
 * A number of slots that are held for long; who finds none waits.
 *
 * Owns: how many are taken, who waits. Does not own: what they are for, what other nodes give.
 *   S1 roots take turns: however many of one root wait, another one has the second slot that becomes free here at the latest
 *   S2 who runs already, e.g. since before a takeover, has a slot at once, and is counted: no further one is given until there are fewer again
 *   S3 a slot, or a place in the queue, is given back once, however often its holder says so
 *   S4 one slot more is for a root that has none here: a single root, however many nodes it fills, keeps no other one waiting
 */
export class FairSlots {
  readonly #slots: number;
  readonly #queue = new JobQueue<Holder>();
  /** Root → slots it has here. */
  readonly #roots = new Map<string, number>();
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
    const holder: Holder = { kind: root, actorKey: root, granted, state: "waiting" };
    if (isRunning) this.#enter(holder); // S2
    else {
      this.#queue.add(holder);
      this.#next();
    }
    return () => this.#leave(holder);
  }

  #leave(holder: Holder): void {
    const { state, kind } = holder;
    holder.state = "gone"; // S3
    if (state === "waiting") this.#queue.remove(holder);
    if (state !== "inside") return;
    this.#taken -= 1;
    const left = (this.#roots.get(kind) ?? 1) - 1;
    if (left === 0) this.#roots.delete(kind);
    else this.#roots.set(kind, left);
    this.#next();
  }

  #next(): void {
    for (;;) {
      const isOrdinary = this.#taken < this.#slots; // S1
      const isForNewRoots = this.#taken === this.#slots; // S4
      if (!isOrdinary && !isForNewRoots) return;
      const next = this.#queue.take(({ kind }) => isOrdinary || !this.#roots.has(kind));
      if (next === undefined) return;
      this.#enter(next);
    }
  }

  #enter(holder: Holder): void {
    holder.state = "inside";
    this.#taken += 1;
    this.#roots.set(holder.kind, (this.#roots.get(holder.kind) ?? 0) + 1);
    holder.granted();
  }
}
