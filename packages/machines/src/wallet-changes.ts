import { hash128, type Amount, type Hold, type WalletScope, type WalletState } from "@holdfast/protocol";
import { fundsOf, larger, minus, NOTHING, plus, balanceOf } from "./wallet-balance.ts";
import { WalletInput, type WalletEvent } from "./wallet-event.ts";

// What each event makes of a wallet, once judge-wallet.ts has let it through. Pure.

type Changes = Partial<WalletState>;
type EventOf<T extends WalletEvent["type"]> = Extract<WalletEvent, { readonly type: T }>;

/** Reservations whose end is remembered, so that a late message of theirs is known. */
const ENDED_REMEMBERED = 128;
/** Unresolved ones that are told apart. */
const UNRESOLVED_KEPT = 128;
/** Looks after which a reservation counts as left by its process. */
export const MOST_LOOKS = 3;

/** @throws ZodError when the input does not fit; for the machine that is status `error` */
export function initialWallet(input: unknown, walletId: string): WalletState {
  return {
    ...WalletInput.parse(input),
    walletId,
    settled: { ...NOTHING, nanoUsd: 0, calls: 0, unpricedCalls: 0 },
    open: {},
    unresolved: {},
    olderUnresolved: { ...NOTHING, calls: 0 },
    ended: [],
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

export function isEnded({ ended }: WalletState, job: string, run: string): boolean {
  const wanted = markOf(job, run);
  return ended.some((mark) => mark.startsWith(wanted));
}

const jobMark = (job: string): string => hash128(job).slice(0, 10);
const markOf = (job: string, run: string): string => `${jobMark(job)}.${hash128(run).slice(0, 6)}.`;
const numberOf = (text: string, separator: string): number => Number(text.slice(text.lastIndexOf(separator) + 1));

/** Number of the next physical attempt of a job, from 1: that of the fleet is not counted for jobs that may simply run again. */
function nextAttempt({ open, unresolved, ended }: WalletState, job: string): number {
  const known = [...Object.keys(open), ...Object.keys(unresolved)].filter((id) => jobOf(id) === job);
  const own = `${jobMark(job)}.`;
  const former = ended.filter((mark) => mark.startsWith(own)).map((mark) => numberOf(mark, "."));
  return Math.max(0, ...known.map((id) => numberOf(id, ":")), ...former) + 1;
}

/** A further attempt of a job: the one before it is nobody's any more, and nobody knows what it cost. */
export function withReservation(wallet: WalletState, { job, run, maximum }: EventOf<"reserve">): Changes {
  const id = `${job}:${nextAttempt(wallet, job)}`;
  const left = Object.keys(wallet.open).filter((other) => jobOf(other) === job);
  const next = withUnresolved(wallet, left);
  return { ...next, open: { ...next.open, [id]: { run, maximum, looks: 0 } } };
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
  const { [reservation]: hold, ...unresolved } = wallet.unresolved;
  if (hold === undefined) return {};
  const { microUsd } = by;
  const nanoUsd = (microUsd ?? 0) * 1000;
  return { unresolved, ended: remembered(wallet, reservation, hold), settled: charged(wallet, by, nanoUsd) };
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
  const hold = id === undefined ? undefined : (wallet.open[id] ?? wallet.unresolved[id]);
  if (id === undefined || hold === undefined) return {};
  const ended = remembered(wallet, id, hold);
  if (opened === undefined) return { unresolved: without(wallet.unresolved, id), ended };
  return { open: without(wallet.open, id), ended };
}

function withUnresolved(wallet: WalletState, ids: readonly string[]) {
  let { open, unresolved, olderUnresolved } = wallet;
  for (const id of ids) {
    const hold = open[id];
    if (hold !== undefined) unresolved = { ...unresolved, [id]: hold };
    open = without(open, id);
  }
  for (const id of Object.keys(unresolved).slice(0, -UNRESOLVED_KEPT)) {
    const maximum = unresolved[id]?.maximum ?? NOTHING;
    olderUnresolved = { ...plus(olderUnresolved, maximum), calls: olderUnresolved.calls + 1 };
    unresolved = without(unresolved, id);
  }
  return { open, unresolved, olderUnresolved };
}

const charged = ({ settled }: WalletState, amount: Amount, nanoUsd: number): WalletState["settled"] => ({
  ...plus(settled, amount),
  nanoUsd: settled.nanoUsd + nanoUsd,
  calls: settled.calls + 1,
  unpricedCalls: settled.unpricedCalls + (amount.microUsd === undefined ? 1 : 0),
});

const remembered = ({ ended }: WalletState, id: string, { run }: Hold): WalletState["ended"] =>
  [...ended, `${markOf(jobOf(id), run)}${numberOf(id, ":")}`].slice(-ENDED_REMEMBERED);

function mapHolds(holds: WalletState["open"], change: (hold: Hold) => Hold): WalletState["open"] {
  return Object.fromEntries(Object.entries(holds).map(([id, hold]) => [id, change(hold)]));
}

function without(holds: WalletState["open"], id: string): WalletState["open"] {
  const { [id]: _gone, ...others } = holds;
  return others;
}
