import type { AgentLimits } from "@holdfast/protocol";
import { z } from "zod";

/** One step of a turn as far as repetition can be seen in it: hashes, never content. */
export const StepTrace = z.object({
  /** What was called, with what. */
  action: z.string(),
  /** The same with what came of it. */
  outcome: z.string(),
  /** Every result is an error. */
  isError: z.boolean(),
  /** None of its calls was carried out: it talked. */
  isTalk: z.boolean(),
});
export type StepTrace = Readonly<z.infer<typeof StepTrace>>;

/** How an agent goes round in circles. */
export const STUCK_PATTERNS = ["repeats", "errors", "monologue", "alternating"] as const;
export type StuckPattern = (typeof STUCK_PATTERNS)[number];

type Rules = Readonly<Record<StuckPattern | "window", number>>;

/** Thresholds of an agent, in steps; 0 turns a rule off. */
export const stuckRules = (limits: Pick<AgentLimits, "stuck">): Rules => ({
  repeats: limits.stuck?.repeats ?? 4,
  errors: limits.stuck?.errors ?? 3,
  monologue: limits.stuck?.monologue ?? 3,
  alternating: limits.stuck?.alternating ?? 6,
  window: limits.stuck?.window ?? 20,
});

/** The last steps, bounded: what no rule looks at is forgotten. */
export const withStep = (steps: readonly StepTrace[], step: StepTrace, rules: Rules): readonly StepTrace[] =>
  [...steps, step].slice(-Math.max(1, rules.window));

/**
 * The pattern that the last steps show; undefined while they make progress.
 *
 * @param steps  of one turn since a person last said something, oldest first
 */
export function stuckPatternOf(steps: readonly StepTrace[], rules: Rules): StuckPattern | undefined {
  const seen = steps.slice(-Math.max(1, rules.window));
  return STUCK_PATTERNS.find((pattern) => SHOWS[pattern](lastOf(seen, rules[pattern])));
}

type Shows = (steps: readonly StepTrace[]) => boolean;

const areEqual = (values: readonly string[]): boolean => values.every((value) => value === values[0]);

// Each is asked of exactly as many steps as its threshold says, or of none.
const SHOWS: Readonly<Record<StuckPattern, Shows>> = {
  repeats: (steps) => steps.length > 0 && areEqual(steps.map(({ outcome }) => outcome)),
  errors: (steps) =>
    steps.length > 0 && steps.every(({ isError }) => isError) && areEqual(steps.map(({ action }) => action)),
  monologue: (steps) => steps.length > 0 && steps.every(({ isTalk }) => isTalk),
  alternating: (steps) =>
    steps.length > 1 &&
    steps[0]?.outcome !== steps[1]?.outcome &&
    steps.every(({ outcome }, index) => outcome === steps[index % 2]?.outcome),
};

const lastOf = (steps: readonly StepTrace[], count: number): readonly StepTrace[] =>
  count > 0 && steps.length >= count ? steps.slice(-count) : [];

/** What the agent is told once before it counts as stuck. */
export const NUDGES: Readonly<Record<StuckPattern, string>> = {
  repeats:
    "The last steps made the same calls and had the same results. Do something else, or answer with what you have.",
  errors: "The last steps made the same call and it failed each time. Try another way, or answer with what you have.",
  monologue:
    "None of the last calls could be carried out. Use the tools as they are described, or answer with what you have.",
  alternating: "The last steps go back and forth between two things. Decide, or answer with what you have.",
};
