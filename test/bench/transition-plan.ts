import type { DurabilityClass } from "./bench-world.ts";
import type { Target } from "./report.ts";

/** What one run measures. */
export interface TransitionPlan {
  readonly classes: readonly DurabilityClass[];
  readonly concurrencies: readonly number[];
  /** Windows of each kind, which take turns. */
  readonly windows: number;
  readonly windowMs: number;
  readonly warmUpMs: number;
}

export const FULL_PLAN: TransitionPlan = {
  classes: ["F", "P"],
  concurrencies: [1, 32, 256],
  windows: 5,
  windowMs: 3000,
  warmUpMs: 1500,
};

/** Shows that the bench works; its figures mean little. */
export const QUICK_PLAN: TransitionPlan = {
  classes: ["P"],
  concurrencies: [1, 32],
  windows: 1,
  windowMs: 1000,
  warmUpMs: 300,
};

/** Least share of the bare compare-and-set rate that the whole path reaches. */
const RATIO = 0.2;
/** Most times the bare compare-and-set's median latency that the whole path takes, one at a time. */
const SERIAL = 6;

export const ratioName = (concurrency: number, durabilityClass: DurabilityClass): string =>
  `ratio-${concurrency}-${durabilityClass}`;
export const serialName = (durabilityClass: DurabilityClass): string => `serial-p50-${durabilityClass}`;

/** What the plan can say something about. One at a time, latency counts; with many in flight, throughput. */
export const targetsOf = ({ classes, concurrencies }: TransitionPlan): readonly Target[] =>
  classes.flatMap((durabilityClass) =>
    concurrencies.map((concurrency): Target =>
      concurrency === 1
        ? { name: serialName(durabilityClass), op: "<=", target: SERIAL, unit: "x" }
        : { name: ratioName(concurrency, durabilityClass), op: ">=", target: RATIO, unit: "x" },
    ),
  );
