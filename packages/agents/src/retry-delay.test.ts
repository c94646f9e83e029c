import { expect, test } from "vitest";
import { parseRetryAfterMs, pause, retryDelayMs } from "./retry-delay.ts";

const NOW = Date.parse("2026-01-02T03:04:05Z");

test.each([
  [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
  [{ "retry-after": "1.5" }, 1500],
  [{ "retry-after": "Fri, 02 Jan 2026 03:04:15 GMT" }, 10_000],
  [{ "retry-after": "Fri, 02 Jan 2026 03:04:00 GMT" }, 0],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "-3" }, undefined],
  [{}, undefined],
])("of the headers %o the wait asked for is %s", (headers, expected) => {
  expect(parseRetryAfterMs(new Headers(Object.entries(headers)), NOW)).toBe(expected);
});

test("our own waits double up to a limit and spread over half an interval", () => {
  const pacing = { baseMs: 100, maxMs: 400, maxRetryAfterMs: 1000 };
  const at = (random: number) =>
    [1, 2, 3, 4].map((tries) => retryDelayMs({ ...pacing, random: () => random }, tries, undefined));
  expect(at(0)).toEqual([50, 100, 200, 200]);
  expect(at(1)).toEqual([100, 200, 400, 400]);
});

test("a pause ends with its signal and does not reject", async () => {
  await expect(pause(60_000, AbortSignal.abort())).resolves.toBeUndefined();
});
