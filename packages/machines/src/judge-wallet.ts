import {
  FLEET_PRINCIPAL,
  principalToken,
  type Amount,
  type ErrorCode,
  type Principal,
  type Sum,
  type WalletLimit,
  type WalletState,
} from "@holdfast/protocol";
import { balanceOf, covers, fundsOf, isNothing, minus, plus } from "./wallet-balance.ts";
import { endOf, holdOf, mayBeForgotten, OLDER_UNRESOLVED } from "./wallet-changes.ts";
import type { OwnerEvent, WalletEvent } from "./wallet-event.ts";

// What a wallet makes of an event, before it does. The machine's guards ask it, and so does whoever tells the sender.

type EventOf<T extends WalletEvent["type"]> = Extract<WalletEvent, { readonly type: T }>;

/** Why an event changed nothing, for its sender. */
export interface WalletRefusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  readonly reason: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}
export type WalletVerdict = { readonly kind: "ok" } | { readonly kind: "duplicate" } | WalletRefusal;

const OK: WalletVerdict = { kind: "ok" };
const DUPLICATE: WalletVerdict = { kind: "duplicate" };
const okIf = (isNews: boolean): WalletVerdict => (isNews ? OK : DUPLICATE);

export function judgeWallet(wallet: WalletState, event: WalletEvent): WalletVerdict {
  const stranger = strangerTo(wallet, event, event.principal);
  if (stranger !== undefined) return stranger;
  switch (event.type) {
    case "reserve":
      return judgeReservation(wallet, event);
    case "settle":
    case "release":
    case "leaveUnresolved":
      return judgeEnd(wallet, event);
    case "fence":
      return judgeFence(wallet, event);
    case "lend":
      return judgeLoan(wallet, event);
    case "fund":
      return okIf(wallet.parent !== undefined && !covers(wallet.received, event.total));
    case "giveBack":
      return okIf(!isNothing(spareOf(wallet)));
    case "repaid":
      return okIf(isNewsOfLoan(wallet.lent[event.from], event));
    case "setLimit":
    case "liftFence":
    case "closeHold":
      return judgeOwner(wallet, event);
  }
}

const isNewsOfLoan = (
  loan: WalletState["lent"][string] | undefined,
  { total, gone, asOf }: EventOf<"repaid">,
): boolean =>
  loan !== undefined &&
  asOf > loan.asOf &&
  !(covers(loan.returned, total) && isNothing(minus(gone, loan.gone)) && isNothing(minus(loan.gone, gone)));

/** What a wallet has borrowed and does not need now. */
export const spareOf = (wallet: WalletState): Sum => minus(fundsOf(wallet), balanceOf(wallet).accounted);

const OWNERS = new Set<string>(["setLimit", "liftFence", "closeHold"]);

function strangerTo(wallet: WalletState, event: WalletEvent, principal: Principal | undefined) {
  const token = principal === undefined ? "nobody" : principalToken(principal);
  const isFleet = token === principalToken(FLEET_PRINCIPAL);
  const isOwner = principal !== undefined && principal.kind !== "agent" && !isFleet;
  if (OWNERS.has(event.type) ? isOwner : isFleet) return undefined;
  // Whoever spends may not say how much may be spent.
  return refuse(
    wallet,
    "HF-5305",
    `${event.type} is not for ${token}. Limits are for people and services, money for nodes.`,
  );
}

function judgeReservation(wallet: WalletState, { job, run, maximum, pass, asOf }: EventOf<"reserve">): WalletVerdict {
  if (holdOf(wallet.open, job, run) !== undefined) return DUPLICATE;
  if (endOf(wallet, job, run) !== undefined || holdOf(wallet.unresolved, job, run) !== undefined)
    return refuse(wallet, "HF-5305", "The attempt has ended. Reserve for another one.");
  if (mayBeForgotten(wallet, asOf)) {
    const { ends } = wallet;
    return refuse(wallet, "HF-5307", `It has ended ${ends - asOf} reservations since. Ask again as of now.`, { ends });
  }
  return judgeUse(wallet, maximum, pass);
}

function judgeUse(wallet: WalletState, wanted: Amount, pass: string | undefined): WalletVerdict {
  const { fence, limit } = wallet;
  if (fence !== undefined && fence.fenceId !== pass) {
    return refuse(wallet, "HF-5304", `It is fenced (${fence.fenceId}). Raise its limit and let the work go on.`, {
      fence: fence.fenceId,
      reason: `${wallet.scope}_budget_fence`,
    });
  }
  if (wanted.microUsd === undefined && limit.microUsd !== undefined)
    return refuse(
      wallet,
      "HF-5303",
      "The model has no price, and the wallet a limit in money. Give the model a price.",
    );
  const { accounted, gone, lent } = balanceOf(wallet);
  if (!fits(limit, gone, wanted))
    return refuse(wallet, "HF-5301", "What is left does not cover the call. Raise the limit.", spentFacts(limit, gone));
  if (!fits(limit, accounted, wanted)) {
    const facts = { ...spentFacts(limit, accounted), isLent: !isNothing(lent) };
    return refuse(wallet, "HF-5302", "The rest is held by calls that run. Ask again when they have ended.", facts);
  }
  const needed = plus(accounted, wanted);
  if (wallet.parent === undefined || covers(fundsOf(wallet), needed)) return OK;
  const { microUsd, tokens } = plus(needed, wallet.returned);
  const facts = { parent: wallet.parent, microUsd, tokens };
  return refuse(wallet, "HF-5306", "It has to borrow from the wallet above first.", facts);
}

function judgeEnd(wallet: WalletState, event: EventOf<"settle" | "release" | "leaveUnresolved">): WalletVerdict {
  const { job, run, type } = event;
  if (holdOf(wallet.open, job, run) !== undefined) return OK;
  const end = endOf(wallet, job, run);
  if (end === "known" || (end === "older" && type === "leaveUnresolved")) return DUPLICATE;
  if (end === "older")
    return refuse(wallet, "HF-5305", "It is unresolved for so long that it is not told apart any more.");
  if (holdOf(wallet.unresolved, job, run) === undefined)
    return refuse(wallet, "HF-5305", "There is no such reservation.");
  // A late receipt tells what nobody knew; that nobody knows is known already.
  return okIf(type !== "leaveUnresolved");
}

function judgeFence(wallet: WalletState, { maximum, pass }: EventOf<"fence">): WalletVerdict {
  if (wallet.fence !== undefined && wallet.fence.fenceId !== pass) return DUPLICATE;
  const verdict = judgeUse(wallet, maximum, pass);
  const isSpent = verdict.kind === "refused" && verdict.code === "HF-5301";
  return isSpent ? okIf(wallet.fence === undefined) : refuse(wallet, "HF-5305", "It is not spent. Reserve again.");
}

function judgeLoan(wallet: WalletState, { to, total, pass }: EventOf<"lend">): WalletVerdict {
  const lent = wallet.lent[to]?.lent ?? { microUsd: 0, tokens: 0 };
  if (covers(lent, total)) return DUPLICATE;
  return judgeUse(wallet, minus(total, lent), pass);
}

function judgeOwner(wallet: WalletState, event: OwnerEvent): WalletVerdict {
  switch (event.type) {
    case "setLimit": {
      const { microUsd, tokens } = wallet.limit;
      const isSame = (given: number | null | undefined, now: number | undefined) =>
        given === undefined || given === (now ?? null);
      return okIf(!isSame(event.microUsd, microUsd) || !isSame(event.tokens, tokens));
    }
    case "liftFence":
      return okIf(wallet.fence?.fenceId === event.fenceId);
    case "closeHold":
      return event.reservation in wallet.unresolved ||
        (event.reservation === OLDER_UNRESOLVED && wallet.olderUnresolved.calls > 0)
        ? OK
        : refuse(
            wallet,
            "HF-5305",
            `Reservation ${event.reservation} is not unresolved. "holdfast budget show" lists all.`,
          );
  }
}

/** A limit that is reached allows nothing more, not even what costs nothing. */
function fits(limit: WalletLimit, used: Sum, { microUsd = 0, tokens }: Amount): boolean {
  const within = (most: number | undefined, before: number, more: number): boolean =>
    most === undefined || (before < most && before + more <= most);
  return within(limit.microUsd, used.microUsd, microUsd) && within(limit.tokens, used.tokens, tokens);
}

const spentFacts = (limit: WalletLimit, used: Sum) => ({
  usedMicroUsd: used.microUsd,
  usedTokens: used.tokens,
  ...(limit.microUsd !== undefined && { limitMicroUsd: limit.microUsd }),
  ...(limit.tokens !== undefined && { limitTokens: limit.tokens }),
});

function refuse(
  { walletId, scope }: WalletState,
  code: ErrorCode,
  reason: string,
  facts: WalletRefusal["facts"] = {},
): WalletRefusal {
  return {
    kind: "refused",
    code,
    reason: `Wallet ${walletId}: ${reason}`,
    facts: { wallet: walletId, scope, ...facts },
  };
}
