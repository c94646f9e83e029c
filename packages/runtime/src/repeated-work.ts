import { toPlainFault } from "@holdfast/protocol";
import type { Clock } from "./ports/index.ts";

/**
 * Repeats `work`, each time `ms` after the last one ended, however it ended.
 * @returns cancel: the work that runs is not interrupted
 */
export function repeatEvery(
  clock: Clock,
  ms: number,
  work: () => Promise<void>,
  failed: (reason: string) => void,
): () => void {
  let cancel: (() => void) | undefined;
  let isCancelled = false;
  const again = (): void => {
    cancel = clock.schedule(ms, () => {
      work()
        .catch((error: unknown) => failed(toPlainFault(error, "HF-4001").message))
        .finally(() => {
          if (!isCancelled) again();
        });
    });
  };
  again();
  return () => {
    isCancelled = true;
    cancel?.();
  };
}
