import { expect, test } from "vitest";
import { BrokerTime } from "../broker-time.ts";
import { ManualClock } from "../testing/index.ts";

test("B1, F37: broker time never goes back, whatever the server's clock does", async () => {
  const clock = new ManualClock();
  const time = new BrokerTime(clock);
  time.sample(clock.monotonicMs(), 50_000);
  expect(time.nowMs()).toBe(50_000);
  await clock.advance(1000);
  time.sample(clock.monotonicMs(), 20_000); // another server answered
  expect(time.nowMs()).toBe(50_000);
  await clock.advance(500);
  expect(time.nowMs()).toBe(50_000);
  time.sample(clock.monotonicMs(), 60_000);
  await clock.advance(250);
  expect(time.nowMs()).toBe(60_250);
  time.raiseTo(70_000); // a lease or a message that was stored later than we believe it is
  expect(time.nowMs()).toBe(70_000);
});

test("B2: half of the round trip is the way there", async () => {
  const clock = new ManualClock();
  const time = new BrokerTime(clock);
  const sentAtMs = clock.monotonicMs();
  await clock.advance(400);
  time.sample(sentAtMs, 10_000);
  expect(time.nowMs()).toBe(10_200);
});

test("B3: before the first sample the time is a guess that leaves nothing behind", () => {
  const clock = new ManualClock();
  const time = new BrokerTime(clock);
  expect(time.isKnown).toBe(false);
  expect(time.nowMs()).toBe(clock.wallMs());
  time.sample(clock.monotonicMs(), 5000);
  expect([time.isKnown, time.nowMs()]).toEqual([true, 5000]);
});
