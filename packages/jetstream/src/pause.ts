import { setTimeout as timer } from "node:timers/promises";

/** Waits `delayMs`, or less when `signal` aborts. Never rejects. */
export async function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  try {
    await timer(delayMs, undefined, signal === undefined ? {} : { signal });
  } catch {
    // The only rejection of a timer is its signal; the caller looks at the signal itself.
  }
}

/** Delay before attempt `attempt` (counted from 0) of something that failed: 25 ms doubling up to 1 s. */
export const backoffMs = (attempt: number): number => Math.min(1000, 25 * 2 ** Math.min(attempt, 6));

/** @throws the reason of `signal` when it has aborted; always an Error */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw signal.reason instanceof Error ? signal.reason : new Error("Aborted", { cause: signal.reason });
}
