import { z } from "zod";

/** What a scenario is asked to do. */
export interface ScenarioOptions {
  /** Where its random choices come from; printed with the result. */
  readonly seed: number;
  /** A small run with short leases, for the tests; otherwise what is shipped. */
  readonly quick: boolean;
  /** One of the scenario's variants; default: all of them. */
  readonly variant: string | undefined;
  /** Progress for people. */
  readonly say: (line: string) => void;
}

/** What came out. A row is a claim about what happened; a row that was not tried stands in `leftOut` with the reason. */
export interface ScenarioOutcome {
  readonly rows: Readonly<Record<string, boolean>>;
  readonly leftOut: Readonly<Record<string, string>>;
  /** Figures of the run, for people and for comparisons. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** A story with real processes that is told from start to end and then judged by what is stored. */
export interface Scenario {
  readonly name: string;
  /** Names for `--variant`. */
  readonly variants: readonly string[];
  run(options: ScenarioOptions): Promise<ScenarioOutcome>;
}

/** The line a scenario prints: shape for everyone who reads it. */
export const ResultLine = z.looseObject({
  scenario: z.string().min(1),
  pass: z.boolean(),
  seed: z.int(),
  rows: z.record(z.string(), z.boolean()).refine((rows) => Object.keys(rows).length > 0, "at least one row"),
  leftOut: z.record(z.string(), z.string()),
});
export type ResultLine = z.infer<typeof ResultLine>;

/** An outcome as its line. No row at all is a failure: nothing was shown. */
export function resultLine(scenario: string, seed: number, outcome: ScenarioOutcome): ResultLine {
  const rows = Object.keys(outcome.rows).length > 0 ? outcome.rows : { hasRows: false };
  const pass = Object.values(rows).every(Boolean);
  return ResultLine.parse({ ...outcome.details, scenario, pass, seed, rows, leftOut: outcome.leftOut });
}

/** The line of a scenario that broke off. */
export const brokenLine = (scenario: string, seed: number, error: unknown): ResultLine =>
  resultLine(scenario, seed, {
    rows: { completed: false },
    leftOut: {},
    details: { error: headline(error) },
  });

/** First line of what went wrong: the rest, state and logs, is for standard error. */
export const headline = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
