import type { Clock } from "./ports/index.ts";

export interface ArmedTimer {
  readonly key: string;
  readonly timer: string;
  readonly gen: string;
  readonly dueAtMs: number;
}

/**
 * Deadlines of one partition in broker time.
 *
 * Owns: when the partition looks at its timers. Does not own: whether a timer is still wanted (`step` drops stale generations).
 *   T1 the latest arming of (key, timer) replaces the former
 *   T2 nothing fires before `open` (F23)
 */
export class TimerQueue {
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #due: (timers: readonly ArmedTimer[]) => void;
  readonly #byName = new Map<string, ArmedTimer>();
  readonly #heap: ArmedTimer[] = [];
  #isOpen = false;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, nowMs: () => number, due: (timers: readonly ArmedTimer[]) => void) {
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#due = due;
  }

  get size(): number {
    return this.#byName.size;
  }

  arm(timer: ArmedTimer): void {
    this.#byName.set(`${timer.key}\0${timer.timer}`, timer); // T1
    this.#push(timer);
    if (this.#heap[0] === timer) this.#reschedule();
  }

  /** One that fell due and could not be acted on; gives way to a later arming. */
  armAgain(timer: ArmedTimer): void {
    if (!this.#byName.has(`${timer.key}\0${timer.timer}`)) this.arm(timer);
  }

  cancel(key: string, timer: string): void {
    this.#byName.delete(`${key}\0${timer}`);
  }

  /** Whether this very arming waits for its time here. */
  isHeld({ key, timer, gen }: ArmedTimer): boolean {
    return this.#byName.get(`${key}\0${timer}`)?.gen === gen;
  }

  forget(key: string): void {
    for (const [name, timer] of this.#byName) if (timer.key === key) this.#byName.delete(name);
  }

  open(): void {
    this.#isOpen = true;
    this.#reschedule();
  }

  close(): void {
    this.#isOpen = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #reschedule(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const first = this.#heap[0];
    if (!this.#isOpen || first === undefined) return; // T2
    this.#cancel = this.#clock.schedule(Math.max(0, first.dueAtMs - this.#nowMs()), () => this.#fire());
  }

  #fire(): void {
    const now = this.#nowMs();
    const due: ArmedTimer[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.dueAtMs <= now; first = this.#heap[0]) {
      this.#pop();
      const name = `${first.key}\0${first.timer}`;
      if (this.#byName.get(name) !== first) continue;
      this.#byName.delete(name);
      due.push(first);
    }
    if (due.length > 0) this.#due(due);
    this.#reschedule();
  }

  #push(timer: ArmedTimer): void {
    const heap = this.#heap;
    let child = heap.push(timer) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || above.dueAtMs <= timer.dueAtMs) break;
      heap[child] = above;
      child = parent;
    }
    heap[child] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let hole = 0;
    for (;;) {
      const left = 2 * hole + 1;
      const right = left + 1;
      const leftTimer = heap[left];
      if (leftTimer === undefined) break;
      const rightTimer = heap[right];
      const [least, at] =
        rightTimer !== undefined && rightTimer.dueAtMs < leftTimer.dueAtMs ? [rightTimer, right] : [leftTimer, left];
      if (least.dueAtMs >= last.dueAtMs) break;
      heap[hole] = least;
      hole = at;
    }
    heap[hole] = last;
  }
}
