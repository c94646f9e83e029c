import { expect, test } from "vitest";
import { JobLimits } from "./job-limits.ts";
import { JobTable, type JobAttempt, type JobRequest } from "./job-table.ts";
import { waitUntil } from "./testing/wait-until.ts";

const attempt = (run: () => Promise<unknown>): JobAttempt => ({
  input: undefined,
  inputBytes: 0,
  genesis: "g",
  rev: 1,
  attempt: 1,
  runLogic: run,
  mayStart: () => true,
});

function tableOfOne() {
  const told: string[] = [];
  const table = new JobTable({
    node: "n1",
    limits: new JobLimits({ node: 1, providers: {} }),
    publish: ({ key }, { ok }) => Promise.resolve(void told.push(`${key} ${ok ? "done" : "error"}`)),
    reach: () => undefined,
    failed: (key, error) => told.push(`${key} failed: ${error instanceof Error ? error.message : ""}`),
    held: () => undefined,
    monotonicMs: () => 0,
  });
  const start = (key: string, begin: JobRequest["begin"]): void =>
    void table.start({
      key,
      childId: key,
      src: "call",
      actorKey: "d-1.test.a",
      partition: "d-1",
      definition: undefined,
      share: { kind: "test/call", type: "test", provider: undefined, kindLimit: 10, typeLimit: 10 },
      begin,
      declined: () => told.push(`${key} declined`),
    });
  return { table, told, start };
}

test("J7: an attempt that cannot be prepared gives its place back, holds up no stop, and is looked at again", async () => {
  const { table, told, start } = tableOfOne();
  const preparing = Promise.withResolvers<undefined>();
  start("broken", () => preparing.promise);
  start("next", () => Promise.resolve(attempt(() => Promise.resolve(1))));
  const begun = table.begun("d-1");
  preparing.reject(new Error("nobody answered"));
  await begun;
  await waitUntil("the next one ran", () => told.includes("next done"));
  expect(told).toEqual(["broken failed: nobody answered", "broken declined", "next done"]);
  expect([table.size, table.has("broken")]).toEqual([0, false]);
});

test("J7: a job that was stopped while it was being prepared is not declined as well", async () => {
  const { table, told, start } = tableOfOne();
  const preparing = Promise.withResolvers<undefined>();
  start("broken", () => preparing.promise);
  table.stop("broken", "its actor has ended");
  start("next", () => Promise.resolve(attempt(() => Promise.resolve(1))));
  preparing.reject(new Error("nobody answered"));
  await waitUntil("the next one ran", () => told.includes("next done"));
  await waitUntil("the failure was told", () => told.includes("broken failed: nobody answered"));
  expect(told).not.toContain("broken declined");
});
