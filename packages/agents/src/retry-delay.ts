import { setTimeout as timer } from "node:timers/promises";

/** How long to wait between tries. */
export interface RetryPacing {
  /** Before the second try; doubles with every further one. */
  readonly baseMs: number;
  /** Longest wait of our own choosing. */
  readonly maxMs: number;
  /** Longest wait that somebody else may ask of us. */
  readonly maxRetryAfterMs: number;
  /** 0 ≤ n < 1; spreads the waits of many callers over the second half of the interval. */
  readonly random: () => number;
}

/** Wait after try number `tries` (from 1). What the other side asked for wins, up to the cap. */
export function retryDelayMs(pacing: RetryPacing, tries: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return Math.min(retryAfterMs, pacing.maxRetryAfterMs);
  const full = Math.min(pacing.maxMs, pacing.baseMs * 2 ** (tries - 1));
  return Math.round(full * (0.5 + pacing.random() / 2));
}

/** What `retry-after-ms` or `retry-after` (seconds, or a date) asks for; undefined when neither can be read. */
export function parseRetryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const exact = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(exact) && exact >= 0) return exact;
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // A date names its month; Date.parse takes "-3" for one as well.
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Waits, or less when `signal` aborts. Never rejects. */
export async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await timer(delayMs, undefined, { signal });
  } catch {
    // The only rejection of a timer is its signal; the caller looks at the signal itself.
  }
}
