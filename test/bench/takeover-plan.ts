import type { DurabilityClass } from "./bench-world.ts";
import type { Target } from "./report.ts";

/** What one run of the takeover bench measures. */
export interface TakeoverPlan {
  readonly durabilityClass: DurabilityClass;
  /** Actors with a job that runs when their node is killed. */
  readonly live: number;
  readonly sleepers: number;
  /** Takeovers with and without sleepers, which take turns. */
  readonly pairs: number;
  /** Live actors of the takeovers that are measured from the first claim, beside the sleepers; none in a quick run. */
  readonly manyLive: number;
  readonly manyRounds: number;
}

export const FULL_TAKEOVER: TakeoverPlan = {
  durabilityClass: "F",
  live: 1000,
  sleepers: 1_000_000,
  pairs: 5,
  manyLive: 10_000,
  manyRounds: 3,
};

/** Shows that the bench works; its figures mean little, and are printed without being judged. */
export const QUICK_TAKEOVER: TakeoverPlan = {
  durabilityClass: "P",
  live: 100,
  sleepers: 10_000,
  pairs: 1,
  manyLive: 0,
  manyRounds: 0,
};

/** What the full run is to reach; a quick one says nothing about it. */
export const takeoverTargets = ({ manyLive }: TakeoverPlan): readonly Target[] =>
  manyLive === 0
    ? []
    : [
        { name: "sleepers-ratio", op: "<=", target: 1.2, unit: "x" },
        { name: "read-ms", op: "<=", target: 500, unit: "ms" },
        { name: `live-${manyLive}-s`, op: "<=", target: 5, unit: "s" },
      ];
