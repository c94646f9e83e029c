import { z } from "zod";
import { ActorId, ActorKey, ExternalId } from "./ids.ts";
import { Amount, MicroUsd, Sum, Tokens } from "./money.ts";
import type { Principal } from "./principal.ts";

/** How much a wallet is for: everything, one piece of work with all below it, or one task of that. */
export const WalletScope = z.enum(["global", "root", "task"]);
export type WalletScope = z.infer<typeof WalletScope>;

/** What may be spent in all. What is absent has no limit; 0 allows nothing. */
export const WalletLimit = z.object({ microUsd: MicroUsd.optional(), tokens: Tokens.optional() });
export type WalletLimit = Readonly<z.infer<typeof WalletLimit>>;

/** Money that is held for one physical attempt of a model call. */
export const Hold = z.object({
  /** The process and the try that make the attempt: another one is another attempt. */
  run: z.string(),
  /** What it cannot exceed: that is held. What it is expected to cost stands in the ledger. */
  maximum: Amount,
  /** Looks of the wallet since it was reserved. */
  looks: z.int(),
});
export type Hold = Readonly<z.infer<typeof Hold>>;

/** Why nothing more is reserved in a wallet and all below it, until a person lifts it. */
export const Fence = z.object({
  fenceId: z.string(),
  status: z.literal("paused"),
  scope: WalletScope,
  wallet: z.string(),
  autoResume: z.literal(false),
  /** Job whose reservation was refused. */
  by: z.string(),
});
export type Fence = Readonly<z.infer<typeof Fence>>;

/** Everything a wallet knows: the context of its actor. */
export const WalletState = z.object({
  walletId: z.string(),
  scope: WalletScope,
  /** The wallet that it borrows from. */
  parent: ActorKey.optional(),
  limit: WalletLimit,
  /** Ended with a measured price, or without one (`unpricedCalls`). */
  settled: z.object({ ...Sum.shape, nanoUsd: z.number(), calls: z.int(), unpricedCalls: z.int() }),
  /** Reservations so far. */
  reservations: z.int(),
  /** Those (`<job>:<number>`) that have not ended. */
  open: z.record(z.string(), Hold),
  /** Ended, and nobody knows what they cost: what they held stays held. */
  unresolved: z.record(z.string(), Hold),
  /** The same, of so long ago that they are not told apart any more. */
  olderUnresolved: z.object({ ...Sum.shape, calls: z.int() }),
  /** Short marks of the last reservations that ended, oldest first. */
  ended: z.array(z.string()),
  /** Ends so far, of which those are the last. */
  ends: z.int(),
  /** Borrowed from the parent, and given back to it; both only grow. */
  received: Sum,
  returned: Sum,
  /** The same, seen from above, by the key of the wallet that borrowed; and what is gone there, as its revision `asOf` says. */
  lent: z.record(z.string(), z.object({ lent: Sum, returned: Sum, gone: Sum, asOf: z.int() })),
  fence: Fence.optional(),
  /** Fences so far. */
  fences: z.int(),
});
export type WalletState = Readonly<z.infer<typeof WalletState>>;

/** Id of the wallet above all others. */
export const GLOBAL_WALLET = "global";

/** Who reserves and settles: the nodes. Nobody outside may speak for it on a server with the shipped permissions. */
export const FLEET_PRINCIPAL: Principal = { kind: "service", id: "fleet", roles: [] };

/** Which wallet pays for the model calls of a conversation and of all below it. */
export const Budget = z.object({
  wallet: ExternalId,
  /** What becomes of work that is refused money: it rests until a person lets it go on, a person is asked, or it fails. */
  whenSpent: z.enum(["wait", "ask", "stop"]).default("wait"),
  /** What a person may let it go on with instead of raising the limit. */
  cheaperModel: z.string().min(1).max(128).optional(),
  /** Each task below it has a wallet of its own with this limit. Absent: all pay from the same one. */
  perTask: WalletLimit.optional(),
});
export type Budget = Readonly<z.infer<typeof Budget>>;

/** Who pays for one model call. */
export const Payer = z.object({
  wallet: ExternalId,
  /** A wallet for this task alone, below the other one; made when it is first used. */
  own: z.object({ id: ActorId, limit: WalletLimit }).optional(),
  /** Fence that a person let this work through. */
  pass: z.string().optional(),
});
export type Payer = Readonly<z.infer<typeof Payer>>;
