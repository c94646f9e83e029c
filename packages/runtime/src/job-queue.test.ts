import { describe, expect, test } from "vitest";
import { JobLimits, type JobShare } from "./job-limits.ts";
import { JobQueue } from "./job-queue.ts";

const job = (kind: string, actorKey: string, name: string) => ({ kind, actorKey, name });
type TestJob = ReturnType<typeof job>;

function takeAll(queue: JobQueue<TestJob>, mayRun: (job: TestJob) => boolean = () => true): readonly string[] {
  const names: string[] = [];
  for (let next = queue.take(mayRun); next !== undefined; next = queue.take(mayRun)) names.push(next.name);
  return names;
}

describe("jobs that wait", () => {
  test("Q1: kinds take turns: ten of one kind do not hold up another", () => {
    const queue = new JobQueue<TestJob>();
    for (let n = 0; n < 3; n += 1) queue.add(job("model", `a${n}`, `m${n}`));
    for (let n = 0; n < 3; n += 1) queue.add(job("file", `a${n}`, `f${n}`));
    expect(takeAll(queue)).toEqual(["m0", "f0", "m1", "f1", "m2", "f2"]);
    expect(queue.size).toBe(0);
  });

  test("Q1, Q2: actors take turns, and the jobs of each keep their order", () => {
    const queue = new JobQueue<TestJob>();
    for (const name of ["w1", "w2", "w3"]) queue.add(job("model", "wide", name));
    queue.add(job("model", "narrow", "n1"));
    expect(takeAll(queue)).toEqual(["w1", "n1", "w2", "w3"]);
  });

  test("a kind that may not run is passed over and keeps its turn", () => {
    const queue = new JobQueue<TestJob>();
    queue.add(job("model", "a", "m"));
    queue.add(job("file", "a", "f"));
    expect(takeAll(queue, ({ kind }) => kind !== "model")).toEqual(["f"]);
    expect(takeAll(queue)).toEqual(["m"]);
  });

  test("one that is no longer wanted is taken out", () => {
    const queue = new JobQueue<TestJob>();
    const [first, second] = [job("model", "a", "1"), job("model", "a", "2")];
    queue.add(first);
    queue.add(second);
    queue.remove(first);
    queue.remove(first);
    expect([queue.size, takeAll(queue)]).toEqual([1, ["2"]]);
  });
});

describe("limits of jobs", () => {
  const share = (kind: string, more: Partial<JobShare> = {}): JobShare => ({
    kind,
    type: "agent",
    provider: undefined,
    kindLimit: 10,
    typeLimit: 10,
    ...more,
  });

  test.each([
    ["of the node", share("other", { type: "other" }), { node: 2, providers: {} }],
    ["of a kind", share("call", { kindLimit: 2 }), { node: 10, providers: {} }],
    ["of an actor type", share("other", { typeLimit: 2 }), { node: 10, providers: {} }],
    ["of a provider", share("other", { type: "other", provider: "model" }), { node: 10, providers: { model: 2 } }],
  ])("J5: %s", (_name, next, options) => {
    const limits = new JobLimits(options);
    for (let n = 0; n < 2; n += 1) limits.entered(share("call", { provider: "model" }));
    expect(limits.mayRun(next)).toBe(false);
    limits.left(share("call", { provider: "model" }));
    expect(limits.mayRun(next)).toBe(true);
  });

  test("J5: a provider that is not named has no limit of its own", () => {
    const limits = new JobLimits({ node: 100, providers: { model: 1 } });
    for (let n = 0; n < 9; n += 1) limits.entered(share("call", { provider: "files" }));
    expect(limits.mayRun(share("call", { provider: "files" }))).toBe(true);
    expect(limits.highest).toBe(9);
  });
});
