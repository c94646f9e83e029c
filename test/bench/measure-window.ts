/** What one window showed. Times in ms. */
export interface Window {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Operations that ended inside the measured part. */
  readonly done: number;
  /** Operations that ended in the window or its lead-in. */
  readonly total: number;
}

/** Operations that fill the pipeline first and are not counted, ms. */
const LEAD_IN_MS = 250;

/**
 * Keeps one of each operation in flight for `durationMs` after a lead-in. What ends inside the measured part counts, with its whole latency.
 *
 * @throws what an operation rejects with, after the others have ended
 */
export async function measureWindow(operations: readonly (() => Promise<void>)[], durationMs: number): Promise<Window> {
  const latenciesMs: number[] = [];
  const beginMs = performance.now() + LEAD_IN_MS;
  const endMs = beginMs + durationMs;
  let total = 0;
  let hasFailed = false;
  const repeat = async (operation: () => Promise<void>): Promise<void> => {
    for (let startedMs = performance.now(); startedMs < endMs && !hasFailed;) {
      try {
        await operation();
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      const nowMs = performance.now();
      total += 1;
      if (nowMs >= beginMs && nowMs < endMs) latenciesMs.push(nowMs - startedMs);
      startedMs = nowMs;
    }
  };
  const results = await Promise.allSettled(operations.map(repeat));
  for (const result of results) if (result.status === "rejected") throw result.reason;
  latenciesMs.sort((a, b) => a - b);
  return {
    perSecond: (latenciesMs.length / durationMs) * 1000,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    done: latenciesMs.length,
    total,
  };
}

/** Middle of the values; NaN when there are none. */
export const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

/** Nearest rank. @param sorted ascending */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
