import type { Clock } from "./ports/index.ts";

export interface LimiterOptions {
  /** How many may be inside at a time; asked at every turn, so that it may shrink under pressure. At least 1 counts. */
  readonly slots: () => number;
  /** Sum of the weights that may be inside at a time; default: any. One alone is always let in, however heavy it is. */
  readonly weightLimit?: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly weight: number;
  readonly enter: () => void;
}

/** Turns handed on within one turn of the event loop: sockets and heartbeats come in between. */
const TURNS_AT_ONCE = 64;

/**
 * Lets a bounded number do something at the same time; the others wait in the order they came.
 *
 * Owns: who is inside, who waits. Does not own: what they do.
 *   L1 never more inside than the slots, nor more weight than the limit, except for one that is alone
 *   L2 first come, first served: a heavy one at the front holds up the light ones behind it, so it is never passed over for ever
 *   L3 a long queue that needs no IO does not keep the event loop to itself
 */
export class Limiter {
  readonly #options: LimiterOptions;
  #queue: Waiting[] = [];
  #head = 0;
  #active = 0;
  #weight = 0;
  #highest = 0;
  #turns = 0;
  #isResting = false;

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#queue.length - this.#head;
  }

  /** Most that were ever inside at the same time. */
  get highest(): number {
    return this.#highest;
  }

  /** Enters without waiting. @returns false when it would have to wait; `enter` then */
  tryEnter(weight = 0): boolean {
    if (this.waiting > 0 || !this.#hasRoom(weight)) return false; // L2
    this.#admit(weight);
    return true;
  }

  /** Resolves when it is inside. Whoever entered calls `leave` with the same weight, once. */
  enter(weight = 0): Promise<void> {
    if (this.tryEnter(weight)) return Promise.resolve();
    return new Promise((enter) => this.#queue.push({ weight, enter }));
  }

  leave(weight = 0): void {
    this.#active -= 1;
    this.#weight -= weight;
    this.#next();
  }

  async run<T>(work: () => Promise<T>, weight = 0): Promise<T> {
    if (!this.tryEnter(weight)) await this.enter(weight);
    try {
      return await work();
    } finally {
      this.leave(weight);
    }
  }

  #hasRoom(weight: number): boolean {
    if (this.#active === 0) return true;
    if (this.#active >= Math.max(1, this.#options.slots())) return false;
    return this.#weight + weight <= (this.#options.weightLimit ?? Number.POSITIVE_INFINITY); // L1
  }

  #admit(weight: number): void {
    this.#active += 1;
    this.#weight += weight;
    if (this.#active > this.#highest) this.#highest = this.#active;
  }

  #next(): void {
    while (!this.#isResting) {
      const first = this.#queue[this.#head];
      if (first === undefined || !this.#hasRoom(first.weight)) return;
      if (this.#turns >= TURNS_AT_ONCE) {
        this.#rest();
        return;
      }
      this.#head += 1;
      if (this.#head > 1024 && this.#head * 2 > this.#queue.length) {
        this.#queue = this.#queue.slice(this.#head);
        this.#head = 0;
      }
      this.#turns += 1;
      this.#admit(first.weight);
      first.enter();
    }
  }

  /** L3. */
  #rest(): void {
    this.#isResting = true;
    this.#options.clock.schedule(0, () => {
      this.#isResting = false;
      this.#turns = 0;
      this.#next();
    });
  }
}
