import type { Amount, Sum, WalletState } from "@holdfast/protocol";

// Sums over a wallet. Pure; nothing is decided here.

export const NOTHING: Sum = { microUsd: 0, tokens: 0 };

export const plus = (a: Sum, { microUsd = 0, tokens }: Amount): Sum => ({
  microUsd: a.microUsd + microUsd,
  tokens: a.tokens + tokens,
});

/** Never below 0. */
export const minus = (a: Sum, b: Sum): Sum => ({
  microUsd: Math.max(0, a.microUsd - b.microUsd),
  tokens: Math.max(0, a.tokens - b.tokens),
});

export const larger = (a: Sum, b: Sum): Sum => ({
  microUsd: Math.max(a.microUsd, b.microUsd),
  tokens: Math.max(a.tokens, b.tokens),
});

export const isNothing = ({ microUsd, tokens }: Sum): boolean => microUsd === 0 && tokens === 0;

export const covers = (a: Sum, b: Sum): boolean => a.microUsd >= b.microUsd && a.tokens >= b.tokens;

/** Where the money of a wallet is. */
export interface WalletBalance {
  readonly settled: Sum;
  /** Held by calls that run. */
  readonly held: Sum;
  /** Held by calls whose outcome nobody knows: it is disclosed, and stays until a person closes it or a late receipt comes. */
  readonly unresolved: Sum;
  /** With wallets below. */
  readonly lent: Sum;
  /** What cannot come back by itself: settled, unresolved, and of what was lent as much as is known to be gone there. */
  readonly gone: Sum;
  /** All of that. */
  readonly accounted: Sum;
}

export function balanceOf(wallet: WalletState): WalletBalance {
  const held = Object.values(wallet.open).reduce((sum, { maximum }) => plus(sum, maximum), NOTHING);
  const unresolved = Object.values(wallet.unresolved).reduce(
    (sum, { maximum }) => plus(sum, maximum),
    plus(NOTHING, wallet.olderUnresolved),
  );
  const loans = Object.values(wallet.lent);
  const lent = loans.reduce((sum, one) => plus(sum, minus(one.lent, one.returned)), NOTHING);
  const settled = plus(NOTHING, wallet.settled);
  const gone = loans.reduce((sum, one) => plus(sum, one.gone), plus(settled, unresolved));
  return { settled, held, unresolved, lent, gone, accounted: plus(plus(plus(settled, held), unresolved), lent) };
}

/** What it may use of what it borrowed. */
export const fundsOf = ({ received, returned }: WalletState): Sum => minus(received, returned);
