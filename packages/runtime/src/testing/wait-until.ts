import { setImmediate, setTimeout } from "node:timers/promises";
import { RuntimeFault } from "@holdfast/protocol";

export interface WaitOptions {
  /** Real time, ms. Default 5000. */
  readonly timeoutMs?: number;
  /** Pause between two looks after the first quick ones, ms. Default 5. */
  readonly tickMs?: number;
  /** What to print when the time is over: the state of whatever was waited for. */
  readonly dump?: () => string | Promise<string>;
}

const QUICK_LOOKS = 50;

/**
 * Looks again and again until `condition` gives something other than `false` or `undefined`, and returns that.
 * A condition that throws or rejects counts as not met.
 * @throws RuntimeFault HF-4008 after `timeoutMs`, with the description, the state dump, and the condition's last error as its cause
 */
export async function waitUntil<T>(
  description: string,
  condition: () => T | false | undefined | Promise<T | false | undefined>,
  options: WaitOptions = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 5000;
  const endMs = performance.now() + timeoutMs;
  let lastError: unknown;
  for (let looks = 0; ; looks += 1) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= endMs) throw await timedOut(description, timeoutMs, options.dump, lastError);
    await (looks < QUICK_LOOKS ? setImmediate() : setTimeout(options.tickMs ?? 5));
  }
}

async function timedOut(
  description: string,
  timeoutMs: number,
  dump: (() => string | Promise<string>) | undefined,
  cause: unknown,
): Promise<RuntimeFault> {
  const state = dump === undefined ? "" : `\n${await dump()}`;
  return new RuntimeFault(
    "HF-4008",
    `Waiting for "${description}": expected within ${timeoutMs} ms, did not happen. Read the state below, or wait longer.${state}`,
    cause === undefined ? {} : { cause },
  );
}
