// ManualClock — time that moves only when the test says so.
// Owns: now, the scheduled callbacks.  Does not own: how long a message takes in the memory broker (that is counted in turns).
//   T1 order        callbacks run by due time, then by the order in which they were scheduled
//   T2 settling     between two callbacks, and at the end, everything that can go on without more time goes on
//   T3 wall apart   the wall clock follows the monotonic one until `jumpWall` moves it alone
import { RuntimeFault } from "@holdfast/protocol";
import { Turns } from "./turns.ts";
import type { Clock } from "../ports/index.ts";

interface Scheduled {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

const QUIET_ROUNDS = 3;
const MAX_ROUNDS = 10_000;

/** See the invariants at the top of the file. */
export class ManualClock implements Clock {
  readonly #turns = new Turns();
  readonly #busyProbes: (() => boolean)[] = [];
  #scheduled: readonly Scheduled[] = [];
  #monotonicMs = 0;
  #wallOffsetMs: number;
  #order = 0;

  /** @param startWallMs  wall clock at the start, Unix ms */
  constructor(startWallMs = 1_800_000_000_000) {
    this.#wallOffsetMs = startWallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#monotonicMs + this.#wallOffsetMs;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    this.#order += 1;
    const entry = { dueMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order, callback };
    this.#scheduled = [...this.#scheduled, entry].toSorted((a, b) => a.dueMs - b.dueMs || a.order - b.order); // T1
    return () => {
      this.#scheduled = this.#scheduled.filter((other) => other !== entry);
    };
  }

  /** Number of callbacks that still wait. */
  get pending(): number {
    return this.#scheduled.length;
  }

  /**
   * Moves time forward and runs what falls due on the way, including what the callbacks schedule.
   * @throws what a callback throws; time then stands at that callback
   */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms;
    await this.settle();
    for (let next = this.#nextDue(endMs); next !== undefined; next = this.#nextDue(endMs)) {
      const due = next;
      this.#scheduled = this.#scheduled.filter((other) => other !== due);
      this.#monotonicMs = Math.max(this.#monotonicMs, due.dueMs);
      due.callback();
      await this.settle();
    }
    this.#monotonicMs = endMs;
    await this.settle();
  }

  /**
   * Advances step by step until `condition` holds.
   * @throws RuntimeFault HF-4008 when it does not within `limitMs` of this clock's time
   */
  async advanceUntil(
    description: string,
    condition: () => boolean,
    options: { readonly stepMs?: number; readonly limitMs?: number; readonly dump?: () => string } = {},
  ): Promise<void> {
    const { stepMs = 50, limitMs = 60_000, dump = () => "" } = options;
    const endMs = this.#monotonicMs + limitMs;
    await this.settle();
    while (!condition()) {
      if (this.#monotonicMs >= endMs) {
        throw new RuntimeFault(
          "HF-4008",
          `Advancing until "${description}": expected within ${limitMs} ms of manual time, did not happen. Read the state below.\n${dump()}`,
        );
      }
      await this.advance(stepMs);
    }
  }

  /**
   * Lets promise jobs and macrotask turns run until nothing is left to do at this time (T2), at most for 10,000 rounds.
   * Knows of promises and of what `watchBusy` reports; not of sockets, files or real timers.
   */
  async settle(): Promise<void> {
    let quiet = 0;
    for (let round = 0; quiet < QUIET_ROUNDS && round < MAX_ROUNDS; round += 1) {
      await this.#turns.next();
      quiet = this.#busyProbes.some((isBusy) => isBusy()) ? 0 : quiet + 1;
    }
  }

  /** Makes `settle` wait while `isBusy` says so. */
  watchBusy(isBusy: () => boolean): void {
    this.#busyProbes.push(isBusy);
  }

  /** Moves the wall clock alone (T3): a correction by the operator, or a machine that slept. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** The clock of another machine: same time passing, wall clock `offsetMs` ahead. */
  withWallOffset(offsetMs: number): Clock {
    return {
      monotonicMs: () => this.monotonicMs(),
      wallMs: () => this.wallMs() + offsetMs,
      schedule: (delayMs, callback) => this.schedule(delayMs, callback),
    };
  }

  #nextDue(endMs: number): Scheduled | undefined {
    const first = this.#scheduled[0];
    return first !== undefined && first.dueMs <= endMs ? first : undefined;
  }
}
