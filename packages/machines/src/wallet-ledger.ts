import type { Amount, PlainEvent, Sum } from "@holdfast/protocol";
import { z } from "zod";
import { NOTHING, plus } from "./wallet-balance.ts";
import { MOST_LOOKS } from "./wallet-changes.ts";
import { AttemptEvent, OwnerEvent } from "./wallet-event.ts";

/** How a reservation ended. `closed`: it had ended unresolved, and was told later what it cost. */
export type LedgerEnd = "settled" | "released" | "unresolved" | "closed";

/** One reservation, from its first entry to its last. */
export interface LedgerLine {
  readonly reservation: string;
  /** What it was expected to cost, and what was held. */
  readonly estimate: Amount;
  readonly maximum: Amount;
  /** Absent while it runs. */
  readonly end?: LedgerEnd;
  /** What it was charged; absent while nobody knows. */
  readonly charged?: Amount;
  /** Before it was rounded up; absent for what had no price. */
  readonly nanoUsd?: number;
}

export interface WalletLedger {
  readonly lines: readonly LedgerLine[];
  readonly settled: Sum;
  /** Held by reservations that run, or that ended and nobody knows how. */
  readonly held: Sum;
  readonly unpricedCalls: number;
}

const LedgerEvent = z.union([AttemptEvent, OwnerEvent]);

interface Line {
  readonly job: string;
  readonly run: string;
  line: LedgerLine;
  looks: number;
}

/**
 * The ledger of a wallet, from its journal alone: what its record says has to come to the same.
 *
 * @param events  every event that it applied, in order
 */
export function foldWalletLedger(events: readonly PlainEvent[]): WalletLedger {
  const lines: Line[] = [];
  for (const event of events) applyTo(lines, event);
  const told = lines.map(({ line }) => line);
  const charges = told.flatMap(({ charged }) => charged ?? []);
  return {
    lines: told,
    settled: charges.reduce(plus, NOTHING),
    held: told.filter(({ end }) => end === undefined || end === "unresolved").reduce(holding, NOTHING),
    unpricedCalls: charges.filter(({ microUsd }) => microUsd === undefined).length,
  };
}

const holding = (sum: Sum, { maximum }: LedgerLine): Sum => plus(sum, maximum);

function applyTo(lines: Line[], event: PlainEvent): void {
  const running = (): Line[] => lines.filter(({ line }) => line.end === undefined);
  const end = (line: Line, how: LedgerEnd, more: Partial<LedgerLine> = {}): void => {
    const isLate = line.line.end === "unresolved";
    line.line = { ...line.line, ...more, end: isLate ? "closed" : how };
  };
  if (event.type === "lookedForLeft") {
    for (const line of running()) {
      line.looks += 1;
      if (line.looks >= MOST_LOOKS) end(line, "unresolved");
    }
    return;
  }
  const { data } = LedgerEvent.safeParse(event);
  if (data === undefined) return; // limits, fences and loans are no entries
  const found = (job: string, run: string): readonly Line[] =>
    lines.filter((one) => one.job === job && one.run === run);
  switch (data.type) {
    case "reserve": {
      const { job, run, estimate, maximum } = data;
      for (const line of running()) if (line.job === job) end(line, "unresolved");
      const attempt = lines.filter((one) => one.job === job).length + 1;
      lines.push({ job, run, line: { reservation: `${job}:${attempt}`, estimate, maximum }, looks: 0 });
      return;
    }
    case "settle": {
      const { amount, nanoUsd } = data;
      for (const line of found(data.job, data.run))
        end(line, "settled", { charged: amount, ...(nanoUsd !== undefined && { nanoUsd }) });
      return;
    }
    case "fence":
    case "setLimit":
    case "liftFence":
      return;
    case "release":
      for (const line of found(data.job, data.run)) end(line, "released");
      return;
    case "leaveUnresolved":
      for (const line of found(data.job, data.run)) end(line, "unresolved");
      return;
    case "closeHold":
      for (const line of lines)
        if (line.line.reservation === data.reservation) end(line, "closed", { charged: data.charged });
      return;
  }
}
