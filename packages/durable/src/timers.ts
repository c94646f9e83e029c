import type { TimerEntry } from "@holdfast/protocol";
import type { LocalEffect } from "./step-types.ts";

type Timers = Readonly<Record<string, TimerEntry>>;

/** Timers of one step; copies only when something changes. The same id again replaces: XState would let both fire. */
export class TimerTable {
  #timers: Timers;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  get entries(): Record<string, TimerEntry> {
    return this.#timers;
  }

  arm(timer: string, entry: TimerEntry): void {
    const { [timer]: _replaced, ...others } = this.#timers;
    this.#timers = { ...others, [timer]: entry };
  }

  cancel(timer: string): void {
    if (!Object.hasOwn(this.#timers, timer)) return;
    const { [timer]: _cancelled, ...others } = this.#timers;
    this.#timers = others;
  }

  cancelAll(): void {
    if (Object.keys(this.#timers).length > 0) this.#timers = {};
  }
}

/** What the clock of the node has to be told after a commit. */
export function timerChanges(before: Timers, after: Timers): readonly LocalEffect[] {
  if (before === after) return [];
  const changes: LocalEffect[] = [];
  for (const timer of Object.keys(before)) if (!Object.hasOwn(after, timer)) changes.push({ kind: "cancel", timer });
  for (const [timer, { gen, dueAtMs }] of Object.entries(after)) {
    if (!Object.hasOwn(before, timer) || before[timer]?.gen !== gen)
      changes.push({ kind: "schedule", timer, gen, dueAtMs });
  }
  return changes;
}
