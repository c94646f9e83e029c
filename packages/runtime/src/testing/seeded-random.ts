import { fnv1a32 } from "@holdfast/protocol";
import type { Random } from "../ports/index.ts";

/**
 * Repeatable randomness: the same seed gives the same values, on every machine.
 * @see generator: mulberry32 (public domain), 32 bits of state
 */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number | string) {
    this.#state = typeof seed === "string" ? fnv1a32(seed) : seed >>> 0;
  }

  /** At least 0, less than 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** A whole number of 0 … `limit - 1`. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** True with the probability `rate` (0 to 1). */
  chance(rate: number): boolean {
    return rate > 0 && this.fraction() < rate;
  }

  hex(bytes: number): string {
    return Array.from({ length: bytes }, () => this.below(256).toString(16).padStart(2, "0")).join("");
  }
}
