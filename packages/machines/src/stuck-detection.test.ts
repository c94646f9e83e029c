import { describe, expect, test } from "vitest";
import { stuckPatternOf, stuckRules, withStep, type StepTrace } from "./stuck-detection.ts";

const usual = stuckRules({});
/** `a1` called a and got 1; `a!` failed; `~a` talked. */
const trace = (text: string): StepTrace => ({
  action: text.replace("!", "").charAt(0),
  outcome: text,
  isError: text.includes("!"),
  isTalk: text.startsWith("~"),
});
const found = (steps: string, rules = usual) => stuckPatternOf(steps.split(" ").map(trace), rules);

describe("steps that go round in circles", () => {
  test.each([
    ["a1 a1 a1 a1", "repeats"],
    ["b1 a1 a1 a1 a1", "repeats"],
    ["a!1 a!2 a!3", "errors"],
    ["~a ~b ~c", "monologue"],
    ["a1 b1 a1 b1 a1 b1", "alternating"],
    ["c1 b1 a1 b1 a1 b1 a1", "alternating"],
  ])("%s is %s", (steps, pattern) => {
    expect(found(steps)).toBe(pattern);
  });

  test.each([
    "a1",
    "a1 a1 a1",
    "a1 a1 a1 a2",
    "a1 a1 b1 a1 a1",
    "a!1 a!2",
    "a!1 b!2 a!3",
    "a!1 a2 a!3",
    "~a ~b c1",
    "a1 b1 a1 b1 a1",
    "a1 b1 a1 b1 a1 b2",
    "a1 b1 c1 a1 b1 c1",
  ])("%s is none of them", (steps) => {
    expect(found(steps)).toBeUndefined();
  });

  test("thresholds are the agent's; 0 turns a rule off", () => {
    expect(found("a1 a1", stuckRules({ stuck: { repeats: 2 } }))).toBe("repeats");
    expect(found("a1 a1 a1 a1", stuckRules({ stuck: { repeats: 0 } }))).toBeUndefined();
    expect(found("a!1 a!2 a!3", stuckRules({ stuck: { errors: 0 } }))).toBeUndefined();
    expect(found("a1 b1 a1 b1", stuckRules({ stuck: { alternating: 4 } }))).toBe("alternating");
  });

  test("only the window is looked at, and kept", () => {
    const narrow = stuckRules({ stuck: { window: 3 } });
    expect(found("a1 a1 a1 a1", narrow)).toBeUndefined();
    expect(found("~a ~b ~c", narrow)).toBe("monologue");
    let kept: readonly StepTrace[] = [];
    for (let n = 0; n < 30; n += 1) kept = withStep(kept, trace(`a${n}`), usual);
    expect(kept.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 20 }, (_, n) => `a${n + 10}`));
  });
});
