import { describe, expect, test } from "vitest";
import type { LiveSnapshot } from "./engine.ts";
import { LiveCache } from "./live-cache.ts";

const live = (context: unknown): LiveSnapshot => ({
  status: "active",
  value: "a",
  context,
  historyValue: {},
  children: {},
});

describe("LiveCache", () => {
  test("remembers per stored snapshot and per cache, the last one put in", () => {
    const [one, other] = [new LiveCache(), new LiveCache()];
    const stored = Object.freeze({ value: "a" });
    one.set(stored, live(1));
    expect([
      one.get(stored)?.context,
      one.has(stored),
      other.get(stored),
      other.has(stored),
      one.get({ value: "a" }),
    ]).toEqual([1, true, undefined, false, undefined]);
    one.set(stored, live(2));
    expect(one.get(stored)?.context).toBe(2);
    other.set(stored, live(3));
    expect([one.get(stored), other.get(stored)?.context]).toEqual([undefined, 3]);
  });

  test("leaves nothing on a stored snapshot that a copy, a comparison or the codec could see", () => {
    const cache = new LiveCache();
    const stored = { value: "a" };
    cache.set(stored, live(1));
    expect(stored).toStrictEqual({ value: "a" });
    expect(Reflect.ownKeys(stored)).toEqual(["value"]);
    expect(cache.has({ ...stored })).toBe(false);
    expect(cache.has(structuredClone(stored))).toBe(false);
  });
});
