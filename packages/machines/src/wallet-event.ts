import { ActorKey, Amount, MicroUsd, Principal, Sum, Tokens, WalletLimit, WalletScope } from "@holdfast/protocol";
import { z } from "zod";

// Set by the shell from the subject of the message; what a sender writes there is overwritten or dropped.
const principal = Principal.optional();
const attempt = { job: z.string().min(1).max(400), run: z.string().min(1).max(128) };

/** What a wallet is started with. */
export const WalletInput = z.object({
  scope: WalletScope,
  limit: WalletLimit.default({}),
  /** Key of the wallet that it borrows from. Absent: it has what its limit says. */
  parent: ActorKey.optional(),
});
export type WalletInput = Readonly<z.infer<typeof WalletInput>>;

/** What nodes send about one physical attempt of a model call. */
export const AttemptEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("reserve"),
    ...attempt,
    estimate: Amount,
    maximum: Amount,
    /** Id of a fence that a person has let this work through. */
    pass: z.string().optional(),
    /** Ends that the wallet had at least when this was sent: a copy that comes after it was forgotten is known by it. */
    asOf: z.int().min(0).default(0),
    principal,
  }),
  /** It was carried out and measured. Without `microUsd` it had no price. */
  z.object({ type: z.literal("settle"), ...attempt, amount: Amount, nanoUsd: z.number().min(0).optional(), principal }),
  /** It is proved to have cost nothing. */
  z.object({ type: z.literal("release"), ...attempt, reason: z.string().max(200), principal }),
  /** Nobody will know what it cost. */
  z.object({ type: z.literal("leaveUnresolved"), ...attempt, reason: z.string().max(200), principal }),
  /** A reservation was refused because everything is spent: nothing more is reserved until a person says so. */
  z.object({ type: z.literal("fence"), ...attempt, maximum: Amount, pass: z.string().optional(), principal }),
]);
export type AttemptEvent = Readonly<z.infer<typeof AttemptEvent>>;

/** How money comes down and goes back up. Totals, not steps: one that comes twice, or late, changes nothing. */
export const FundsEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("lend"), to: ActorKey, total: Sum, pass: z.string().optional(), principal }),
  z.object({ type: z.literal("fund"), total: Sum, principal }),
  /** What is neither spent nor held goes back. */
  z.object({ type: z.literal("giveBack"), principal }),
  /** How that wallet stands at its revision `asOf`: given back in all, and gone there for good. */
  z.object({ type: z.literal("repaid"), from: ActorKey, total: Sum, gone: Sum, asOf: z.int().min(0), principal }),
]);
export type FundsEvent = Readonly<z.infer<typeof FundsEvent>>;

/** What people and services may do with a wallet. */
export const OwnerEvent = z.discriminatedUnion("type", [
  /** Replaces what is given; null: no limit. Wakes nobody. */
  z.object({
    type: z.literal("setLimit"),
    microUsd: MicroUsd.nullable().optional(),
    tokens: Tokens.nullable().optional(),
    reason: z.string().max(500).optional(),
    principal,
  }),
  z.object({ type: z.literal("liftFence"), fenceId: z.string(), principal }),
  /** Ends the hold of an attempt whose outcome nobody knows, by what a person found out. */
  z.object({
    type: z.literal("closeHold"),
    reservation: z.string(),
    charged: Amount,
    reason: z.string().max(500).optional(),
    principal,
  }),
]);
export type OwnerEvent = Readonly<z.infer<typeof OwnerEvent>>;

/** Everything that may be sent to a wallet. */
export const WalletEvent = z.discriminatedUnion("type", [
  ...AttemptEvent.options,
  ...FundsEvent.options,
  ...OwnerEvent.options,
]);
export type WalletEvent = Readonly<z.infer<typeof WalletEvent>>;
