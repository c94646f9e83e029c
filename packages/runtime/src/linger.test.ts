import { describe, expect, test } from "vitest";
import { Linger } from "./linger.ts";
import { ManualClock } from "./testing/manual-clock.ts";

describe("Linger", () => {
  test("calls everybody who waits back at one tick, with one timer", async () => {
    const clock = new ManualClock();
    const linger = new Linger(clock, 5);
    const called: string[] = [];
    linger.wait(() => called.push("a"));
    await clock.advance(3);
    linger.wait(() => called.push("b"));
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(called).toEqual([]);
    await clock.advance(1);
    expect(called).toEqual(["a", "b"]);
    expect(clock.pending).toBe(0);
  });

  test("forgets who cancelled, and ticks again for who comes later", async () => {
    const clock = new ManualClock();
    const linger = new Linger(clock, 5);
    const called: string[] = [];
    linger.wait(() => called.push("a"))();
    await clock.advance(5);
    linger.wait(() => {
      called.push("b");
      linger.wait(() => called.push("c"));
    });
    await clock.advance(5);
    expect(called).toEqual(["b"]);
    await clock.advance(5);
    expect(called).toEqual(["b", "c"]);
  });
});
