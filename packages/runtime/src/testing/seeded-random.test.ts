import { describe, expect, test } from "vitest";
import { SeededRandom } from "./seeded-random.ts";

const draw = (seed: number | string): string => new SeededRandom(seed).hex(16);

describe("SeededRandom", () => {
  test("the same seed gives the same values, another seed others", () => {
    expect(draw(7)).toBe(draw(7));
    expect(draw("7/a")).toBe(draw("7/a"));
    expect(draw(7)).not.toBe(draw(8));
    expect(draw("7/a")).not.toBe(draw("7/b"));
  });

  test("the generator never changes: recorded seeds stay reproducible", () => {
    expect(new SeededRandom(1).hex(8)).toMatchInlineSnapshot(`"a00087fbf7479cb8"`);
  });

  test("hex has two lower-case digits per byte", () => {
    const random = new SeededRandom(1);
    for (const bytes of [1, 8, 16, 100]) expect(random.hex(bytes)).toMatch(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
    expect(random.hex(0)).toBe("");
  });

  test("numbers fill their range evenly, and a chance is met at its rate", () => {
    const random = new SeededRandom(1);
    const counts = Array.from({ length: 10 }, () => 0);
    for (let n = 0; n < 10_000; n += 1) {
      const value = random.below(10);
      counts[value] = (counts[value] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(850);
    expect(Math.max(...counts)).toBeLessThan(1150);
    const met = Array.from({ length: 10_000 }, () => random.chance(0.2)).filter(Boolean).length;
    expect(met).toBeGreaterThan(1800);
    expect(met).toBeLessThan(2200);
    expect([random.chance(0), random.chance(1)]).toEqual([false, true]);
  });
});
