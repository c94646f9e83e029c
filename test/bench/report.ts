import type { DurabilityClass } from "./bench-world.ts";
import type { MachineFacts } from "./machine-facts.ts";
import type { Takeover } from "./takeover-run.ts";

/** What one load reaches of another one: medians of the ratios of neighbouring windows. */
export interface Comparison {
  readonly rate: number;
  readonly p50: number;
}

/** One kind of load at one concurrency: medians over its windows. */
export interface LoadResult {
  /** `raw-<concurrency>`, `own-raw-<concurrency>` or `e2e-<concurrency>`; of wallets `counter-<callers>`, `one-root-<callers>` or `all-roots-<callers>`. */
  readonly name: string;
  readonly class: DurabilityClass;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Per second of each window, in the order they were measured. */
  readonly windows: readonly number[];
  /** Processor time per operation, µs; absent where the system does not tell. */
  readonly cpuUs?: { readonly client: number; readonly node: number; readonly server: number };
  /** Part of the machine that other processes took meanwhile, 0 to 1. */
  readonly othersShare?: number;
  /** Only of `e2e`: over the NATS client's own compare-and-set, which the targets are about. */
  readonly overRaw?: Comparison;
  /** Only of `e2e`: over this project's own, faster primitive; not judged. */
  readonly overOwnRaw?: Comparison;
}

/** Takeovers of one kind: medians, in ms. Phases overlap, since partitions are taken up beside one another. */
export interface TakeoverResult extends Omit<Takeover, "cpu"> {
  /** `live-<live actors>-sleepers-<sleepers>`. */
  readonly name: string;
  readonly class: DurabilityClass;
  /** `totalMs` of each, in the order they were measured. */
  readonly totals: readonly number[];
  /** Processor time per live actor from SIGKILL to its next commit, µs; absent where the system does not tell. */
  readonly cpuUs?: { readonly node: number; readonly server: number };
  /** Part of the machine that other processes took meanwhile, 0 to 1. */
  readonly othersShare?: number;
}

/** What came out so far; filled while a bench runs, so that a run that fails still shows what it had. */
export interface BenchFindings<Result> {
  machine: MachineFacts;
  readonly results: Result[];
  /** Target name → figure. */
  readonly reached: Map<string, number>;
}

/** Something a run is to reach. */
export interface Target {
  readonly name: string;
  readonly op: ">=" | "<=";
  readonly target: number;
  readonly unit: "x" | "ms" | "s";
}

export interface JudgedTarget extends Target {
  /** Null when the run did not come that far. */
  readonly reached: number | null;
  readonly held: boolean;
}

/** The last line on standard output of any bench. */
export interface ReportLine {
  readonly bench: string;
  readonly pass: boolean;
  readonly machine: MachineFacts;
  readonly results: readonly (LoadResult | TakeoverResult)[];
  readonly targets: readonly JudgedTarget[];
  /** Why the run ended early. */
  readonly error?: string;
}

/** @param reached  target name → figure */
export function judge(targets: readonly Target[], reached: ReadonlyMap<string, number>): readonly JudgedTarget[] {
  return targets.map((target) => {
    const figure = reached.get(target.name);
    if (figure === undefined || Number.isNaN(figure)) return { ...target, reached: null, held: false };
    const held = target.op === ">=" ? figure >= target.target : figure <= target.target;
    return { ...target, reached: round(figure), held };
  });
}

/** Three significant digits behind which figures of a shared machine mean nothing. */
export const round = (value: number): number => Number(value.toPrecision(3));
