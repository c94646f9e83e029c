import type { Clock } from "@holdfast/runtime/ports";

/** Node's timers fire at once beyond this, ms. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Real time. Delays of any length: long ones are slept in pieces. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  schedule(delayMs, callback) {
    const dueAt = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const sleep = (ms: number): void => {
      timer = setTimeout(
        () => {
          const leftMs = dueAt - performance.now();
          if (leftMs >= 1) sleep(leftMs);
          else callback();
        },
        Math.min(ms, LONGEST_TIMEOUT_MS),
      );
    };
    sleep(delayMs);
    return () => clearTimeout(timer);
  },
};
