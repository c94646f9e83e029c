/** `mail`: messages that wait. `records`: decoded records. `cells`: what an actor takes besides. `jobs`: inputs of running jobs. */
export type HeldKind = "mail" | "records" | "cells" | "jobs";

/** A decoded record of a KiB or two takes about this many times its encoded size: objects, strings, shapes. Measured on the machines of the bench. */
export const DECODED_FACTOR = 4;
/** What an actor takes in memory besides its record and its messages, bytes. */
export const CELL_BYTES = 6 * 1024;
/** What a waiting message takes besides its bytes. */
export const MESSAGE_BYTES = 320;

const MIB = 1024 * 1024;
/** What a node takes that holds nothing: the engine, its code, buffers of its connections. Measured. */
const BASE_MB = 128;

/**
 * How much a process of `memoryMb` may hold for actors, bytes. Half of what the empty process leaves: as much again is garbage before it is
 * collected.
 */
export const heldLimitOf = (memoryMb: number): number => Math.max(16, (memoryMb - BASE_MB) / 2) * MIB;

/**
 * One node's account of what it holds in memory for its actors, by estimate.
 *
 * Owns: the sums, and whether too much is held. Does not own: what is held.
 *   M1 full above the limit, until a fifth of it is free again
 *   M2 only messages make it full: without any, nobody would ever work it off, so what else is held never stops the reading for good
 */
export class MemoryBudget {
  readonly limitBytes: number;
  readonly #held: Record<HeldKind, number> = { mail: 0, records: 0, cells: 0, jobs: 0 };
  readonly #listeners = new Set<(isFull: boolean) => void>();
  #total = 0;
  #highest = 0;
  #isFull = false;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get total(): number {
    return this.#total;
  }

  /** Most that was ever held. */
  get highest(): number {
    return this.#highest;
  }

  /** M1. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Actors at rest are to leave. */
  get isTight(): boolean {
    return this.#total > 0.7 * this.limitBytes;
  }

  of(kind: HeldKind): number {
    return this.#held[kind];
  }

  /** @param bytes  negative when something is let go */
  hold(kind: HeldKind, bytes: number): void {
    this.#held[kind] += bytes;
    this.#total += bytes;
    if (this.#total > this.#highest) this.#highest = this.#total;
    const isFull = this.#isFull ? !this.#hasRoomAgain() : this.#isTooMuch();
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    for (const listener of this.#listeners) listener(isFull);
  }

  /** @returns ends it */
  onChange(listener: (isFull: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #isTooMuch(): boolean {
    return this.#total > this.limitBytes && this.#held.mail > this.#leastMail; // M2
  }

  #hasRoomAgain(): boolean {
    return this.#total <= 0.8 * this.limitBytes || this.#held.mail <= this.#leastMail / 4;
  }

  get #leastMail(): number {
    return Math.min(MIB, this.limitBytes / 16);
  }
}
