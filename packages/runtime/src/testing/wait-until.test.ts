import { describe, expect, test } from "vitest";
import { waitUntil } from "./wait-until.ts";

describe("waitUntil", () => {
  test("returns what the condition gave as soon as it gave something", async () => {
    let looks = 0;
    const found = await waitUntil("the third look", () => {
      looks += 1;
      return looks === 3 ? `look ${looks}` : undefined;
    });
    expect(found).toBe("look 3");
  });

  test("waits for a condition that comes true in a later macrotask, also an asynchronous one", async () => {
    let done = false;
    setTimeout(() => (done = true), 20);
    await waitUntil("the timer ran", () => Promise.resolve(done));
    expect(done).toBe(true);
  });

  test("zero and the empty string are values; false and undefined are not", async () => {
    expect(await waitUntil("a number", () => 0)).toBe(0);
    expect(await waitUntil("a text", () => "")).toBe("");
    await expect(waitUntil("never", () => false, { timeoutMs: 5 })).rejects.toThrow("never");
  });

  test("a condition that throws counts as not met", async () => {
    let looks = 0;
    const value = await waitUntil("no more throwing", () => {
      looks += 1;
      if (looks < 3) throw new Error("not yet");
      return looks;
    });
    expect(value).toBe(3);
  });

  test("the time-out names what was waited for, prints the state and keeps the last error", async () => {
    const failing = waitUntil("task t1 settled", () => Promise.reject(new Error("no such task")), {
      timeoutMs: 20,
      tickMs: 1,
      dump: () => Promise.resolve("nodes: a, b"),
    });
    await expect(failing).rejects.toMatchObject({
      code: "HF-4008",
      message: expect.stringMatching(/"task t1 settled".*20 ms[^]*nodes: a, b/),
      cause: new Error("no such task"),
    });
  });
});
