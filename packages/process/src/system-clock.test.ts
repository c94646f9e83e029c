import { expect, test, vi } from "vitest";
import { systemClock } from "./system-clock.ts";

test("a delay of 30 days does not fire at once, and is cancelled", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    let fired = 0;
    const thirtyDaysMs = 30 * 86_400_000;
    systemClock.schedule(thirtyDaysMs, () => (fired += 1));
    const cancel = systemClock.schedule(thirtyDaysMs, () => (fired += 100));
    vi.advanceTimersByTime(thirtyDaysMs - 10);
    expect(fired).toBe(0);
    cancel();
    vi.advanceTimersByTime(20);
    expect(fired).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});
