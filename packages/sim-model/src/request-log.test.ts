import { expect, test } from "vitest";
import { RequestLog } from "./request-log.ts";

const facts = { model: "blocker", lastUser: "child A", messageCount: 1 };
const never = new AbortController().signal;

test("S1: a request is listed on arrival, numbered and dated", () => {
  const log = new RequestLog(() => 7);
  log.arrive(facts);
  log.arrive(facts);
  const listed = { ...facts, at: 7, blocked: false, aborted: false, answered: false };
  expect(log.list()).toEqual([
    { ...listed, number: 1 },
    { ...listed, number: 2 },
  ]);
});

test("S2: a release outlives the requests it freed", async () => {
  const log = new RequestLog(() => 0);
  const held = log.hold(log.arrive(facts), never);
  expect(log.release("child")).toBe(1);
  await held;
  await log.hold(log.arrive(facts), never);
  expect(log.list({ state: "blocked" })).toEqual([]);
});

test("S3: the first ending stands, and an ended request is not held", () => {
  const log = new RequestLog(() => 0);
  const request = log.arrive(facts);
  void log.hold(request, never);
  expect(log.list({ state: "blocked" })).toHaveLength(1);
  log.end(request, "aborted");
  log.end(request, "answered");
  expect(log.list()).toEqual([{ ...request, aborted: true }]);
});

test("attempts count requests of one model with one last message", () => {
  const log = new RequestLog(() => 0);
  const first = log.arrive(facts);
  log.arrive({ ...facts, model: "echo" });
  log.arrive({ ...facts, lastUser: "child B" });
  const again = log.arrive(facts);
  expect([log.attemptOf(first), log.attemptOf(again)]).toEqual([1, 2]);
});

test("a list handed out does not change later", () => {
  const log = new RequestLog(() => 0);
  const request = log.arrive(facts);
  const before = log.list();
  log.end(request, "answered");
  expect(before[0]?.answered).toBe(false);
});

test("a waiter is woken by the request that completes its count, and by no other", async () => {
  const log = new RequestLog(() => 0);
  const steps: string[] = [];
  const waiting = log
    .waitFor({ match: "child A" }, 2, never)
    .then((result) => steps.push(`${result.kind}: ${result.requests.length}`));
  log.arrive(facts);
  log.arrive({ ...facts, lastUser: "child B" });
  await Promise.resolve();
  steps.push("one of two");
  log.arrive(facts);
  await waiting;
  expect(steps).toEqual(["one of two", "reached: 2"]);
});
