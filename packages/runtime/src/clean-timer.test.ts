import { expect, test } from "vitest";
import { CleanTimer } from "./clean-timer.ts";
import { ManualClock } from "./testing/index.ts";

function timerWith(active: number) {
  const clock = new ManualClock();
  const stepping = { active };
  const cleaned: number[] = [];
  const timer = new CleanTimer(clock, 100, stepping, () => cleaned.push(clock.monotonicMs()));
  const startedMs = clock.monotonicMs();
  timer.start();
  return { clock, stepping, timer, after: () => cleaned.map((atMs) => atMs - startedMs) };
}

test("on a quiet node the outbox is cleared after the idle time, once", async () => {
  const { clock, after } = timerWith(15);
  await clock.advance(2000);
  expect(after()).toEqual([100]);
});

test("Q1: while many actors are in a step it gives way, and is cleared when they are through", async () => {
  const { clock, stepping, after } = timerWith(16);
  await clock.advance(350);
  expect(after()).toEqual([]);
  stepping.active = 3;
  await clock.advance(100);
  expect(after()).toEqual([400]);
});

test("on a node that is never quiet it is cleared after eleven idle times", async () => {
  const { clock, after } = timerWith(200);
  await clock.advance(5000);
  expect(after()).toEqual([1100]);
});

test("cancelled while it gives way it clears nothing", async () => {
  const { clock, stepping, timer, after } = timerWith(16);
  await clock.advance(250);
  timer.cancel();
  stepping.active = 0;
  await clock.advance(5000);
  expect(after()).toEqual([]);
});
