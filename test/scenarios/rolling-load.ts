import { setTimeout as pause } from "node:timers/promises";
import type { HoldfastClient } from "@holdfast/client";
import { toPlainFault } from "@holdfast/protocol";
import type { SeededRandom } from "@holdfast/runtime/testing";

/** One request: how long its sender waited, and what for. */
export interface Measured {
  readonly what: "pay" | "order";
  readonly startedAtMs: number;
  readonly ms: number;
}

export interface RollingLoadOptions {
  readonly holdfast: HoldfastClient;
  readonly random: SeededRandom;
  readonly tills: number;
  /** Senders that pay one request after the other. */
  readonly payers: number;
  /** Pause of a sender between two requests, ms. */
  readonly thinkMs: number;
  /** Pause between two orders, ms. */
  readonly orderEveryMs: number;
}

/**
 * People at tills, orders with items, and hauls that take their time.
 *
 * Owns: what was asked and answered, and how long each answer took. Does not own: what became of it (the store and the ledger say that).
 */
export class RollingLoad {
  readonly measured: Measured[] = [];
  /** Till → payments that were answered as applied or accepted, and their sum. */
  readonly paid = new Map<string, { times: number; sum: number }>();
  /** What came instead of an answer that says applied. */
  readonly unexpected: string[] = [];
  readonly orders: string[] = [];
  readonly hauls: string[] = [];
  readonly #options: RollingLoadOptions;
  readonly #stopping = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(options: RollingLoadOptions) {
    this.#options = options;
  }

  /** Opens the tills, then lets the senders go. */
  async start(): Promise<void> {
    const { holdfast, tills, payers } = this.#options;
    const names = Array.from({ length: tills }, (_, n) => `till-${n}`);
    await Promise.all(names.map((name) => holdfast.start("till", name, undefined, { timeoutMs: 30_000 })));
    for (const name of names) this.paid.set(name, { times: 0, sum: 0 });
    this.#running = [...Array.from({ length: payers }, () => this.#pay(names)), this.#order()];
  }

  /** Begins hauls; resolves when their records are stored, not when they arrived. */
  async haul(count: number, ms: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, n) => `haul-${this.hauls.length + n}`);
    this.hauls.push(...ids);
    await Promise.all(ids.map((id) => this.#measured("order", () => this.#options.holdfast.start("haul", id, { ms }))));
  }

  /** No further requests; resolves when the last one was answered. */
  async stop(): Promise<void> {
    this.cancel();
    await Promise.all(this.#running);
  }

  /** No further requests. */
  cancel(): void {
    this.#stopping.abort();
  }

  async #pay(names: readonly string[]): Promise<void> {
    const { holdfast, random, thinkMs } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const id = names[random.below(names.length)] ?? "";
      const amount = 1 + random.below(100);
      const kind = await this.#measured("pay", () => holdfast.send({ type: "till", id }, { type: "pay", amount }));
      const paid = this.paid.get(id);
      // Accepted means stored: its answer got lost, not the payment.
      if ((kind === "applied" || kind === "accepted") && paid !== undefined) {
        paid.times += 1;
        paid.sum += amount;
      }
      await pause(thinkMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  async #order(): Promise<void> {
    const { holdfast, orderEveryMs } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const id = `order-${this.orders.length}`;
      this.orders.push(id);
      await this.#measured("order", () => holdfast.start("order", id, { items: 2, waitMs: 200 }));
      await pause(orderEveryMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  async #measured(what: Measured["what"], request: () => Promise<{ readonly kind: string }>): Promise<string> {
    const startedAtMs = Date.now();
    const from = performance.now();
    const kind = await request().then(
      (result) => result.kind,
      (error: unknown) => toPlainFault(error, "HF-4001").code,
    );
    this.measured.push({ what, startedAtMs, ms: performance.now() - from });
    if (kind !== "applied") this.unexpected.push(`${what} at ${new Date(startedAtMs).toISOString()}: ${kind}`);
    return kind;
  }
}

/** Value below which a share of the samples lies; 0 without samples. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
