// LedgerBook — decides what an effect or a settlement adds to the log.
// Owns: which keys were applied, which calls are settled.  Does not own: the file, the figures.
//   B1 once-per-key    a key is applied by its first attempt and by no later one
//   B2 every-attempt   each attempt becomes a line, whether it changes anything or not
//   B3 only-from-lines a book that has replayed a log decides as the one that wrote it
// A planted fault breaks B1 or B3 on purpose, once per process, so that a checker can be checked.

import type { AttemptLine, LedgerLine } from "./ledger-line.ts";

/**
 * A fault the ledger commits on purpose with the first effect it applies.
 *
 * `duplicate`: applied twice. `lost`: answered as applied, but never written. `late`: written only
 * after its call was settled.
 */
export type LedgerPlant = "duplicate" | "lost" | "late";

/** What to write, and what to answer once it is written. */
export type Decision<Answer> = { readonly lines: readonly LedgerLine[]; readonly answer: Answer };

/** `first` is the attempt that applied the key; `attempt` the number of this one. */
export type EffectAnswer = {
  readonly applied: boolean;
  readonly first: number;
  readonly attempt: number;
};

/** `settled` is false when the call was settled before; `outcome` is the one that stands. */
export type SettlementAnswer = { readonly settled: boolean; readonly outcome: string };

/** What a caller says about an effect. */
export type EffectRequest = Omit<AttemptLine, "line" | "attempt" | "at">;

/** Decides; see the invariants at the top of the file. */
export class LedgerBook {
  #attempts = 0;
  readonly #keyOfAttempt = new Map<number, string>();
  readonly #firstAttemptOfKey = new Map<string, number>();
  readonly #outcomeOfCall = new Map<string, string>();
  readonly #withheld = new Map<string, number>();
  #plant: LedgerPlant | undefined;

  constructor(plant?: LedgerPlant) {
    this.#plant = plant;
  }

  /** Takes in a line of the log (B3). Lines must come in the order of the log. */
  replay(line: LedgerLine): void {
    switch (line.line) {
      case "attempt":
        this.#attempts = line.attempt;
        this.#keyOfAttempt.set(line.attempt, line.idempotencyKey);
        return;
      case "applied": {
        const key = this.#keyOfAttempt.get(line.attempt);
        if (key !== undefined && !this.#firstAttemptOfKey.has(key)) {
          this.#firstAttemptOfKey.set(key, line.attempt);
        }
        return;
      }
      case "settlement":
        if (!this.#outcomeOfCall.has(line.callId)) {
          this.#outcomeOfCall.set(line.callId, line.outcome);
        }
        return;
    }
  }

  /** Decides about an effect (B1, B2). */
  effect(request: EffectRequest, nowMs: number): Decision<EffectAnswer> {
    const attempt = this.#attempts + 1;
    const attemptLine: LedgerLine = { line: "attempt", attempt, at: nowMs, ...request };
    this.replay(attemptLine);
    const first = this.#firstAttemptOfKey.get(request.idempotencyKey);
    if (first !== undefined) {
      return { lines: [attemptLine], answer: { applied: false, first, attempt } };
    }
    const appliedLine: LedgerLine = { line: "applied", attempt, at: nowMs };
    this.replay(appliedLine);
    return {
      lines: [attemptLine, ...this.#planted(appliedLine, request.callId)],
      answer: { applied: true, first: attempt, attempt },
    };
  }

  /** Decides about a settlement. A repeated one is written down and changes nothing. */
  settle(callId: string, outcome: string, nowMs: number): Decision<SettlementAnswer> {
    const settled = !this.#outcomeOfCall.has(callId);
    const line: LedgerLine = { line: "settlement", at: nowMs, callId, outcome };
    this.replay(line);
    const withheld = this.#withheld.get(callId);
    this.#withheld.delete(callId);
    return {
      lines: withheld === undefined ? [line] : [line, { line: "applied", attempt: withheld, at: nowMs }],
      answer: { settled, outcome: this.#outcomeOfCall.get(callId) ?? outcome },
    };
  }

  #planted(applied: Extract<LedgerLine, { line: "applied" }>, callId: string): LedgerLine[] {
    const plant = this.#plant;
    this.#plant = undefined;
    switch (plant) {
      case "duplicate":
        return [applied, applied];
      case "lost":
        return [];
      case "late":
        this.#withheld.set(callId, applied.attempt);
        return [];
      case undefined:
        return [applied];
    }
  }
}
