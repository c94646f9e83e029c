// RetainedWindow — which envelopes a runner still has to keep, without their content.
// Owns: places, receipts, the latest result, what the transcript's store confirmed.  Does not own: bytes, the file.
//   W1 unreceipted-stays   a durable envelope stays until its receipt, and with it everything after it
//   W2 covered-result      only a checkpoint at the latest result, covered by the store, removes anything; the result itself stays
//   W3 threshold-triggers  the threshold says when it is worth while, never what may go: a cut inside a turn could begin inside a block
//   W4 receipts-repeat     a receipt that comes again changes nothing, also after its envelope is gone
//   W5 store-forward       what the store confirmed never moves backwards

import { orderFault } from "../runner-fault.ts";
import type { EnvelopeSeq, StoreSeq } from "../wire/coordinates.ts";
import { isDurable, type RunnerEnvelope } from "../wire/envelope.ts";

/** Envelopes that must be retained before a checkpoint removes any (W3). */
export const COMPACTION_THRESHOLD = 2048;

export interface ResultPlace {
  readonly seq: EnvelopeSeq;
  readonly storeSeq: StoreSeq;
}

/** What is lost to a reader: everything after `afterSeq` and before `firstRetainedSeq` (`lastSeq` + 1 when nothing is retained). */
export interface ReplayGap {
  readonly afterSeq: number;
  readonly firstRetainedSeq: number;
  readonly lastSeq: number;
}

/** Everything but the retained places themselves: what a file that begins anew has to say. */
export interface WindowBase {
  readonly lastSeq: number;
  readonly confirmedStoreSeq: number;
  /** Durable places among the retained ones that have their receipt. */
  readonly receipted: readonly number[];
}

export const EMPTY_BASE: WindowBase = { lastSeq: 0, confirmedStoreSeq: 0, receipted: [] };

/** See the invariants at the top of the file. */
export class RetainedWindow {
  #lastSeq: number;
  /** Place of the oldest retained envelope; `#lastSeq + 1` when there is none. */
  #firstSeq: number;
  #confirmedStoreSeq: number;
  #latestResult: ResultPlace | undefined;
  /** Durable and retained, without a receipt, ascending. */
  readonly #unreceipted = new Set<number>();
  readonly #receipted = new Set<number>();

  constructor(base: WindowBase = EMPTY_BASE) {
    this.#lastSeq = base.lastSeq;
    this.#firstSeq = base.lastSeq + 1;
    this.#confirmedStoreSeq = base.confirmedStoreSeq;
    for (const seq of base.receipted) this.#receipted.add(seq);
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** `undefined` when nothing is retained. */
  get firstRetainedSeq(): number | undefined {
    return this.#firstSeq > this.#lastSeq ? undefined : this.#firstSeq;
  }

  get retained(): number {
    return this.#lastSeq - this.#firstSeq + 1;
  }

  get latestResult(): ResultPlace | undefined {
    return this.#latestResult;
  }

  get confirmedStoreSeq(): number {
    return this.#confirmedStoreSeq;
  }

  /** Durable envelopes whose receipt has not come, oldest first. */
  get unreceipted(): readonly number[] {
    return [...this.#unreceipted];
  }

  /** What a file says first whose envelopes begin with the oldest retained one. */
  toBase(): WindowBase {
    return { lastSeq: this.#firstSeq - 1, confirmedStoreSeq: this.#confirmedStoreSeq, receipted: [...this.#receipted] };
  }

  /** @throws RunnerFault HF-9002 when it is not the next place, or a result's coordinate goes backwards */
  append(envelope: RunnerEnvelope): void {
    if (envelope.seq !== this.#lastSeq + 1)
      throw orderFault("Runner", `envelope ${this.#lastSeq + 1} expected, ${envelope.seq} appended`, {
        expected: this.#lastSeq + 1,
        found: envelope.seq,
      });
    if (envelope.op === "result") this.#noteResult(envelope);
    this.#lastSeq = envelope.seq;
    if (isDurable(envelope) && !this.#receipted.has(envelope.seq)) this.#unreceipted.add(envelope.seq);
  }

  /**
   * The host has stored a durable envelope (W4).
   *
   * @returns whether it is news
   * @throws RunnerFault HF-9002 when no durable envelope can have had that place
   */
  receipt(seq: number): "receipted" | "duplicate" {
    if (this.#unreceipted.delete(seq)) {
      this.#receipted.add(seq);
      return "receipted";
    }
    // What is gone was receipted if it was durable (W1).
    if (this.#receipted.has(seq) || (seq >= 1 && seq < this.#firstSeq)) return "duplicate";
    throw orderFault("Runner", `a receipt for ${seq} came, which is no durable envelope of this journal`, {
      seq,
      lastSeq: this.#lastSeq,
    });
  }

  /**
   * The transcript's store has confirmed up to `storeSeq`.
   *
   * @throws RunnerFault HF-9002 when it had confirmed more before (W5)
   */
  confirmStore(storeSeq: number): void {
    if (storeSeq < this.#confirmedStoreSeq)
      throw orderFault("Runner", `the store confirmed ${this.#confirmedStoreSeq}, then ${storeSeq}`, {
        confirmed: this.#confirmedStoreSeq,
        found: storeSeq,
      });
    this.#confirmedStoreSeq = storeSeq;
  }

  /**
   * Where a checkpoint at `resultSeq` cuts: the first place that stays. Removes nothing by itself.
   *
   * @param storeFlushed  whether the transcript's store has everything up to the result, the result included (W2)
   * @param threshold  retained envelopes above which it is worth while (W3)
   * @returns `undefined` when nothing goes
   * @throws RunnerFault HF-9002 when `resultSeq` is not the latest result
   */
  planCut(
    resultSeq: number,
    options: { readonly storeFlushed: boolean; readonly threshold?: number },
  ): number | undefined {
    const result = this.#latestResult;
    if (result === undefined || result.seq !== resultSeq)
      throw orderFault("Runner", `a checkpoint at ${resultSeq} was asked for, the latest result is ${result?.seq}`, {
        found: resultSeq,
        latest: result?.seq ?? 0,
      });
    if (!options.storeFlushed) return undefined;
    if (this.retained <= (options.threshold ?? COMPACTION_THRESHOLD)) return undefined;
    const [oldest = resultSeq] = this.#unreceipted;
    const cut = Math.min(oldest, resultSeq);
    return cut > this.#firstSeq ? cut : undefined;
  }

  /** Forgets what lies before `cut`, a place that `planCut` gave. @returns envelopes removed */
  cutBefore(cut: number): number {
    const removed = cut - this.#firstSeq;
    this.#firstSeq = cut;
    for (const seq of this.#receipted) if (seq < cut) this.#receipted.delete(seq);
    return removed;
  }

  /**
   * What a reader behind `cursor` (a place) has missed for ever; `undefined` when everything after it is retained.
   *
   * @throws RunnerFault HF-9002 when the cursor is ahead of the journal
   */
  gapAfter(cursor: number): ReplayGap | undefined {
    if (cursor > this.#lastSeq)
      throw orderFault("Runner", `a cursor at ${cursor} is ahead of the journal, which ends at ${this.#lastSeq}`, {
        cursor,
        lastSeq: this.#lastSeq,
      });
    if (cursor >= this.#firstSeq - 1) return undefined;
    return { afterSeq: cursor, firstRetainedSeq: this.#firstSeq, lastSeq: this.#lastSeq };
  }

  #noteResult({ seq, storeSeq }: ResultPlace): void {
    if (this.#latestResult !== undefined && storeSeq < this.#latestResult.storeSeq)
      throw orderFault(
        "Runner",
        `a result says the store confirmed ${storeSeq}, the one before said ${this.#latestResult.storeSeq}`,
        {
          found: storeSeq,
          before: this.#latestResult.storeSeq,
        },
      );
    this.#latestResult = { seq, storeSeq };
    this.#confirmedStoreSeq = Math.max(this.#confirmedStoreSeq, storeSeq);
  }
}
