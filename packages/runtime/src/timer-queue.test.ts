import fc from "fast-check";
import { expect, test } from "vitest";
import { TimerQueue } from "./timer-queue.ts";

/** A clock that runs what is due when told to. */
function handClock() {
  let now = 0;
  let entries: { readonly at: number; readonly run: () => void }[] = [];
  return {
    monotonicMs: () => now,
    wallMs: () => now,
    schedule: (ms: number, run: () => void) => {
      const entry = { at: now + ms, run };
      entries.push(entry);
      return () => void (entries = entries.filter((other) => other !== entry));
    },
    advance: (ms: number) => {
      now += ms;
      for (
        let due = entries.find(({ at }) => at <= now);
        due !== undefined;
        due = entries.find(({ at }) => at <= now)
      ) {
        const run = due;
        entries = entries.filter((other) => other !== run);
        run.run();
      }
    },
  };
}

test("T2: nothing fires before the queue is opened; overdue timers fire at once then", () => {
  const clock = handClock();
  const fired: string[] = [];
  const queue = new TimerQueue(clock, clock.wallMs, (due) => fired.push(...due.map(({ timer }) => timer)));
  queue.arm({ key: "k", timer: "late", gen: "1", dueAtMs: 5 });
  clock.advance(100);
  expect(fired).toEqual([]);
  queue.open();
  clock.advance(0);
  expect(fired).toEqual(["late"]);
});

test("T1: the latest arming replaces the former; a cancelled one never fires", () => {
  const clock = handClock();
  const fired: string[] = [];
  const queue = new TimerQueue(clock, clock.wallMs, (due) => fired.push(...due.map(({ gen }) => gen)));
  queue.open();
  queue.arm({ key: "k", timer: "t", gen: "1", dueAtMs: 10 });
  queue.arm({ key: "k", timer: "t", gen: "2", dueAtMs: 30 });
  queue.arm({ key: "k", timer: "u", gen: "3", dueAtMs: 20 });
  queue.cancel("k", "u");
  clock.advance(25);
  expect(fired).toEqual([]);
  clock.advance(5);
  expect(fired).toEqual(["2"]);
});

test("timers fire in order of their deadlines, each once", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 60 }), (deadlines) => {
      const clock = handClock();
      const fired: number[] = [];
      const queue = new TimerQueue(clock, clock.wallMs, (due) => fired.push(...due.map(({ dueAtMs }) => dueAtMs)));
      queue.open();
      deadlines.forEach((dueAtMs, i) => queue.arm({ key: "k", timer: `t${i}`, gen: "1", dueAtMs }));
      for (let i = 0; i < 12; i += 1) clock.advance(100);
      expect(fired).toEqual(deadlines.toSorted((a, b) => a - b));
    }),
    { seed: 7 },
  );
});
