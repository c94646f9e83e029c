import { expect, test } from "vitest";
import { LedgerProgress } from "./ledger-progress.ts";

const nothing = { attempts: 0, applied: 0, settled: 0 };

test("a waiter is woken when the last of its counts is reached, not before", async () => {
  const progress = new LedgerProgress(nothing);
  const steps: string[] = [];
  const waiting = progress
    .reach({ attempts: 2, applied: 1, settled: 0 }, new AbortController().signal)
    .then((isReached) => steps.push(`reached: ${isReached}`));
  progress.add({ attempts: 2, applied: 0, settled: 1 });
  await Promise.resolve();
  steps.push("two attempts");
  progress.add({ attempts: 0, applied: 1, settled: 0 });
  await waiting;
  expect(steps).toEqual(["two attempts", "reached: true"]);
  expect(progress.now).toEqual({ attempts: 2, applied: 1, settled: 1 });
});

test("a waiter gives up when its signal aborts", async () => {
  const controller = new AbortController();
  const waiting = new LedgerProgress(nothing).reach({ ...nothing, settled: 1 }, controller.signal);
  controller.abort();
  expect(await waiting).toBe(false);
});
