import { hash128, type Amount, type Hold, type WalletScope, type WalletState } from "@holdfast/protocol";
import { fundsOf, larger, minus, NOTHING, plus, balanceOf } from "./wallet-balance.ts";
import { WalletInput, type WalletEvent } from "./wallet-event.ts";

// What each event makes of a wallet, once judge-wallet.ts has let it through. Pure.

type Changes = Partial<WalletState>;
type EventOf<T extends WalletEvent["type"]> = Extract<WalletEvent, { readonly type: T }>;

/** Reservations whose end is remembered, so that a late message of theirs is known. */
export const ENDED_REMEMBERED = 128;
/** Unresolved ones that are told apart. */
export const UNRESOLVED_KEPT = 128;
/** What a person calls the unresolved ones that are not told apart any more. */
export const OLDER_UNRESOLVED = "older";
/** Looks after which a reservation counts as left by its process. */
export const MOST_LOOKS = 3;

/** @throws ZodError when the input does not fit; for the machine that is status `error` */
export function initialWallet(input: unknown, walletId: string): WalletState {
  return {
    ...WalletInput.parse(input),
    walletId,
    settled: { ...NOTHING, nanoUsd: 0, calls: 0, unpricedCalls: 0 },
    reservations: 0,
    open: {},
    unresolved: {},
    olderUnresolved: { ...NOTHING, calls: 0 },
    ended: [],
    ends: 0,
    received: NOTHING,
    returned: NOTHING,
    lent: {},
    fences: 0,
  };
}

const jobOf = (id: string): string => id.slice(0, id.lastIndexOf(":"));

/** Id of the reservation of an attempt; undefined when there is none. */
export function holdOf(holds: WalletState["open"], job: string, run: string): string | undefined {
  for (const id in holds) if (holds[id]?.run === run && jobOf(id) === job) return id;
  return undefined;
}

/** Of a reservation that has ended: how, as far as that is remembered. `older`: unresolved, and not told apart any more. */
export function endOf({ ended }: WalletState, job: string, run: string): "known" | "older" | undefined {
  const mark = markOf(job, run);
  if (ended.includes(mark)) return "known";
  return ended.includes(mark + OLDER) ? "older" : undefined;
}

/** Whether an attempt that was begun `asOf` so many ends ago may have ended and been forgotten since. */
export const mayBeForgotten = ({ ends }: WalletState, asOf: number): boolean => ends - asOf > ENDED_REMEMBERED;

const markOf = (job: string, run: string): string => hash128(`${job}\0${run}`).slice(0, 16);
const OLDER = "?";

/** A further attempt of a job: the one before it is nobody's any more, and nobody knows what it cost. */
export function withReservation(wallet: WalletState, { job, run, maximum }: EventOf<"reserve">): Changes {
  // Counted for the whole wallet: nothing has to be known of earlier attempts, and no two have the same id.
  const reservations = wallet.reservations + 1;
  const left = Object.keys(wallet.open).filter((other) => jobOf(other) === job);
  const next = withUnresolved(wallet, left);
  return { ...next, reservations, open: { ...next.open, [`${job}:${reservations}`]: { run, maximum, looks: 0 } } };
}

export function withSettlement(wallet: WalletState, { job, run, amount, nanoUsd = 0 }: EventOf<"settle">): Changes {
  return { ...withEnd(wallet, job, run), settled: charged(wallet, amount, nanoUsd) };
}

export const withRelease = (wallet: WalletState, { job, run }: EventOf<"release">): Changes =>
  withEnd(wallet, job, run);

export function withLeft(wallet: WalletState, { job, run }: EventOf<"leaveUnresolved">): Changes {
  const id = holdOf(wallet.open, job, run);
  return id === undefined ? {} : withUnresolved(wallet, [id]);
}

/** Reservations whose process has not been heard of for so many looks are nobody's. */
export function withLook(wallet: WalletState): Changes {
  const looked = mapHolds(wallet.open, (hold) => ({ ...hold, looks: hold.looks + 1 }));
  const left = Object.keys(looked).filter((id) => (looked[id]?.looks ?? 0) >= MOST_LOOKS);
  return withUnresolved({ ...wallet, open: looked }, left);
}

export const withLimit = ({ limit }: WalletState, { microUsd, tokens }: EventOf<"setLimit">): Changes => {
  const money = microUsd === undefined ? limit.microUsd : (microUsd ?? undefined);
  const most = tokens === undefined ? limit.tokens : (tokens ?? undefined);
  return { limit: { ...(money !== undefined && { microUsd: money }), ...(most !== undefined && { tokens: most }) } };
};

export const withClosedHold = (wallet: WalletState, { reservation, charged: by }: EventOf<"closeHold">): Changes => {
  const nanoUsd = (by.microUsd ?? 0) * 1000;
  const settled = charged(wallet, by, nanoUsd, reservation === OLDER_UNRESOLVED ? wallet.olderUnresolved.calls : 1);
  if (reservation === OLDER_UNRESOLVED) return { olderUnresolved: { ...NOTHING, calls: 0 }, settled };
  const { [reservation]: hold, ...unresolved } = wallet.unresolved;
  return hold === undefined
    ? {}
    : { unresolved, settled, ...remembered(wallet, [markOf(jobOf(reservation), hold.run)]) };
};

export function withFence(wallet: WalletState, { job }: EventOf<"fence">, scope: WalletScope = wallet.scope): Changes {
  const fences = wallet.fences + 1;
  const fenceId = `fence-${fences}`;
  return {
    fences,
    fence: { fenceId, status: "paused", scope, wallet: wallet.walletId, autoResume: false, by: job },
  };
}

export function withLoan({ lent }: WalletState, { to, total }: EventOf<"lend">): Changes {
  const before = lent[to] ?? { lent: NOTHING, returned: NOTHING, gone: NOTHING, asOf: 0 };
  return { lent: { ...lent, [to]: { ...before, lent: larger(before.lent, total) } } };
}

export function withRepayment({ lent }: WalletState, { from, total, gone, asOf }: EventOf<"repaid">): Changes {
  const before = lent[from];
  if (before === undefined) return {};
  return { lent: { ...lent, [from]: { ...before, returned: larger(before.returned, total), gone, asOf } } };
}

export const withFunds = ({ received }: WalletState, { total }: EventOf<"fund">): Changes => ({
  received: larger(received, total),
});

export const withSpareReturned = (wallet: WalletState): Changes => ({
  returned: plus(wallet.returned, minus(fundsOf(wallet), balanceOf(wallet).accounted)),
});

function withEnd(wallet: WalletState, job: string, run: string): Changes {
  const opened = holdOf(wallet.open, job, run);
  const id = opened ?? holdOf(wallet.unresolved, job, run);
  if (id === undefined) return {};
  const ends = remembered(wallet, [markOf(job, run)]);
  if (opened === undefined) return { unresolved: without(wallet.unresolved, id), ...ends };
  return { open: without(wallet.open, id), ...ends };
}

function withUnresolved(wallet: WalletState, ids: readonly string[]) {
  let { open, unresolved, olderUnresolved } = wallet;
  for (const id of ids) {
    const hold = open[id];
    if (hold !== undefined) unresolved = { ...unresolved, [id]: hold };
    open = without(open, id);
  }
  const marks: string[] = [];
  for (const id of Object.keys(unresolved).slice(0, -UNRESOLVED_KEPT)) {
    const { maximum = NOTHING, run = "" } = unresolved[id] ?? {};
    olderUnresolved = { ...plus(olderUnresolved, maximum), calls: olderUnresolved.calls + 1 };
    unresolved = without(unresolved, id);
    marks.push(markOf(jobOf(id), run) + OLDER);
  }
  return { open, unresolved, olderUnresolved, ...(marks.length > 0 && remembered(wallet, marks)) };
}

const charged = ({ settled }: WalletState, amount: Amount, nanoUsd: number, calls = 1): WalletState["settled"] => ({
  ...plus(settled, amount),
  nanoUsd: settled.nanoUsd + nanoUsd,
  calls: settled.calls + calls,
  unpricedCalls: settled.unpricedCalls + (amount.microUsd === undefined ? calls : 0),
});

const remembered = ({ ended, ends }: WalletState, marks: readonly string[]): Pick<WalletState, "ended" | "ends"> => ({
  ended: [...ended, ...marks].slice(-ENDED_REMEMBERED),
  ends: ends + marks.length,
});

function mapHolds(holds: WalletState["open"], change: (hold: Hold) => Hold): WalletState["open"] {
  return Object.fromEntries(Object.entries(holds).map(([id, hold]) => [id, change(hold)]));
}

function without(holds: WalletState["open"], id: string): WalletState["open"] {
  const { [id]: _gone, ...others } = holds;
  return others;
}
