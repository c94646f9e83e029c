import { describe, expect, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { Turns } from "./turns.ts";

describe("ManualClock", () => {
  test("T1: callbacks run by due time, then in the order in which they were scheduled, at their time", async () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const note = (name: string) => () => ran.push(`${name}@${clock.monotonicMs()}`);
    clock.schedule(20, note("late"));
    clock.schedule(10, note("first"));
    clock.schedule(10, note("second"));
    clock.schedule(-5, note("overdue"));
    await clock.advance(20);
    expect(ran).toEqual(["overdue@0", "first@10", "second@10", "late@20"]);
    expect(clock.monotonicMs()).toBe(20);
  });

  test("nothing runs before its time, and time does not move by itself", async () => {
    const clock = new ManualClock();
    let ran = false;
    clock.schedule(1000, () => (ran = true));
    await clock.advance(999);
    expect({ ran, pending: clock.pending, now: clock.monotonicMs() }).toEqual({ ran: false, pending: 1, now: 999 });
    await clock.advance(1);
    expect({ ran, pending: clock.pending }).toEqual({ ran: true, pending: 0 });
  });

  test("a delay of a month does not overflow", async () => {
    const clock = new ManualClock();
    let ran = false;
    const monthMs = 31 * 24 * 3_600_000;
    clock.schedule(monthMs, () => (ran = true));
    await clock.advance(monthMs - 1);
    expect(ran).toBe(false);
    await clock.advance(1);
    expect(ran).toBe(true);
  });

  test("what a callback schedules runs in the same advance when it falls due there", async () => {
    const clock = new ManualClock();
    const ran: number[] = [];
    const tick = (): void => {
      ran.push(clock.monotonicMs());
      clock.schedule(10, tick);
    };
    clock.schedule(10, tick);
    await clock.advance(35);
    expect(ran).toEqual([10, 20, 30]);
    expect(clock.pending).toBe(1);
  });

  test("a cancelled callback does not run, also when the one before it cancels it", async () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const cancel = clock.schedule(10, () => ran.push("cancelled"));
    cancel();
    const cancels: (() => void)[] = [];
    clock.schedule(20, () => cancels.forEach((cancelNext) => cancelNext()));
    cancels.push(clock.schedule(20, () => ran.push("cancelled by the one before")));
    await clock.advance(30);
    expect(ran).toEqual([]);
  });

  test("T2: promise jobs and turns of a callback end before the next callback", async () => {
    const clock = new ManualClock();
    const turns = new Turns();
    clock.watchBusy(() => !turns.isQuiet);
    const ran: string[] = [];
    clock.schedule(10, () => {
      void (async () => {
        for (let hop = 0; hop < 20; hop += 1) await turns.next(3);
        ran.push("work of the first");
      })();
    });
    clock.schedule(11, () => ran.push("second"));
    await clock.advance(11);
    expect(ran).toEqual(["work of the first", "second"]);
  });

  test("T2: settling ends although something is always busy", async () => {
    const clock = new ManualClock();
    clock.watchBusy(() => true);
    await clock.settle();
    expect(clock.monotonicMs()).toBe(0);
  });

  test("advancing until a condition stops at the step at which it holds, and fails with the description and state", async () => {
    const clock = new ManualClock();
    let ticks = 0;
    const tick = (): void => {
      ticks += 1;
      clock.schedule(100, tick);
    };
    clock.schedule(100, tick);
    await clock.advanceUntil("three ticks", () => ticks >= 3, { stepMs: 10 });
    expect(clock.monotonicMs()).toBe(300);
    const failing = clock.advanceUntil("never", () => false, { limitMs: 200, dump: () => `${ticks} ticks` });
    await expect(failing).rejects.toMatchObject({
      code: "HF-4008",
      message: expect.stringMatching(/"never"[^]*5 ticks/),
    });
  });

  test("T3: the wall clock follows time, and jumps alone", async () => {
    const clock = new ManualClock(1_000_000);
    const ahead = clock.withWallOffset(3_600_000);
    await clock.advance(500);
    clock.jumpWall(-10_000);
    expect(clock.wallMs()).toBe(990_500);
    expect(ahead.wallMs()).toBe(4_590_500);
    expect([clock.monotonicMs(), ahead.monotonicMs()]).toEqual([500, 500]);
  });

  test("a callback that throws fails the advance", async () => {
    const clock = new ManualClock();
    clock.schedule(10, () => {
      throw new Error("broken callback");
    });
    await expect(clock.advance(20)).rejects.toThrow("broken callback");
    expect(clock.monotonicMs()).toBe(10);
  });
});
