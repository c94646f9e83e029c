import type { CounterInput, StockLine } from "./counter.machine.ts";

const LINES = 12;

/** What a counter is started with: 1 KiB once encoded, an ordinary mixture of texts and numbers. */
export function counterInput(owner: string): CounterInput {
  const lines = Array.from({ length: LINES }, (_, n): StockLine => ({
    sku: `sku-${1000 + n}`,
    title: `Shelf ${n}, box ${n * 7}: spare rollers, counted by hand`,
    quantity: n * 31,
  }));
  return { owner, lines };
}
