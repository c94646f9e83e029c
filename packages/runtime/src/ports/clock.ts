/** Time as the runtime sees it. */
export interface Clock {
  /** Monotonic, ms, arbitrary origin. */
  monotonicMs(): number;
  /** This machine's wall clock, Unix ms; only used to estimate broker time and to notice jumps. */
  wallMs(): number;
  /** Runs `callback` once after `delayMs`; delays of any length. @returns cancel */
  schedule(delayMs: number, callback: () => void): () => void;
}
