import type { DurabilityClass } from "./bench-world.ts";
import type { Target } from "./report.ts";

/** What one run of the wallet bench measures. */
export interface WalletPlan {
  readonly durabilityClass: DurabilityClass;
  /** Calls that want money at the same time. */
  readonly callers: number;
  /** Roots they belong to in the second load; in the first they all belong to one. */
  readonly roots: number;
  /** Windows of each kind, which take turns. */
  readonly windows: number;
  readonly windowMs: number;
  readonly warmUpMs: number;
}

export const FULL_WALLET_PLAN: WalletPlan = {
  durabilityClass: "F",
  callers: 150,
  roots: 15,
  windows: 3,
  windowMs: 3000,
  warmUpMs: 1500,
};

/** Shows that the bench works; its figures mean little. */
export const QUICK_WALLET_PLAN: WalletPlan = {
  durabilityClass: "P",
  callers: 30,
  roots: 6,
  windows: 1,
  windowMs: 400,
  warmUpMs: 100,
};

/** Messages that one wallet takes, beside those that one small actor takes: its record is larger, and grows with what it holds. */
export const ONE_WALLET = "messages-one-wallet";
/** Reservations of all roots, beside those of one: the wallet above them must not be what they wait for. */
export const ALL_ROOTS = "reservations-all-roots";

export const WALLET_TARGETS: readonly Target[] = [
  { name: ONE_WALLET, op: ">=", target: 0.4, unit: "x" },
  { name: ALL_ROOTS, op: ">=", target: 1.5, unit: "x" },
];
