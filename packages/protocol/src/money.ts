import { z } from "zod";
import type { ModelPrice } from "./agent.ts";

/** Millionths of a US dollar, always whole: sums of fractions drift, sums of whole numbers do not. */
export const MicroUsd = z.int().min(0);
export const Tokens = z.int().min(0);

/** What something costs. Without `microUsd` it has no price, which is not a price of 0. */
export const Amount = z.object({ microUsd: MicroUsd.optional(), tokens: Tokens });
export type Amount = Readonly<z.infer<typeof Amount>>;

/** A total of amounts; what had no price is not in `microUsd`. */
export const Sum = z.object({ microUsd: MicroUsd, tokens: Tokens });
export type Sum = Readonly<z.infer<typeof Sum>>;

/** A measured price. `nanoUsd`: before it was rounded up to `microUsd`; it may have three decimals. */
export interface Cost {
  readonly microUsd: number;
  readonly nanoUsd: number;
}

/** What so many tokens cost. Whole until the last division, so nothing is lost up to 9,000 dollars a call. */
export function costOf(
  price: ModelPrice,
  { inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number },
): Cost {
  const picoUsd = inputTokens * price.inputMicroUsd + outputTokens * price.outputMicroUsd;
  return { microUsd: Math.ceil(picoUsd / 1_000_000), nanoUsd: picoUsd / 1000 };
}
