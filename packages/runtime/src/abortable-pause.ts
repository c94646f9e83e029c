import { RuntimeFault } from "@holdfast/protocol";
import type { Clock } from "./ports/index.ts";

/** Waits. @throws RuntimeFault HF-3008 as soon as `signal` aborts: whoever waited has nothing to do any more */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const given = (): RuntimeFault =>
    new RuntimeFault("HF-3008", "A wait ended because its partition was given away. The new owner goes on.");
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(given());
      return;
    }
    let cancel = (): void => undefined;
    const aborted = (): void => {
      cancel();
      reject(given());
    };
    signal.addEventListener("abort", aborted, { once: true });
    cancel = clock.schedule(ms, () => {
      signal.removeEventListener("abort", aborted);
      resolve();
    });
  });
}
