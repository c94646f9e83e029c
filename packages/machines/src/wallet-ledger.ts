import type { Amount, PlainEvent, Sum } from "@holdfast/protocol";
import { z } from "zod";
import { NOTHING, plus } from "./wallet-balance.ts";
import { MOST_LOOKS, OLDER_UNRESOLVED, UNRESOLVED_KEPT } from "./wallet-changes.ts";
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
  /** Unresolved ones that were closed together: their lines are `closed`, and what they were charged in all stands here. */
  readonly closedTogether: readonly { readonly calls: number; readonly charged: Amount }[];
  readonly settled: Sum;
  /** Held by reservations that run, or that ended and nobody knows how. */
  readonly held: Sum;
  readonly unpricedCalls: number;
}

const LedgerEvent = z.union([AttemptEvent, OwnerEvent]);

/**
 * The ledger of a wallet, from its journal alone: what its record says has to come to the same.
 *
 * @param events  every event that it applied, in order
 */
export function foldWalletLedger(events: readonly PlainEvent[]): WalletLedger {
  const ledger = new Ledger();
  for (const event of events) ledger.take(event);
  const { closedTogether } = ledger;
  const lines = ledger.lines.map(({ line }) => line);
  const charges = [
    ...lines.flatMap(({ charged }) => (charged === undefined ? [] : [{ calls: 1, charged }])),
    ...closedTogether,
  ];
  const unpriced = charges.filter(({ charged }) => charged.microUsd === undefined);
  return {
    lines,
    closedTogether,
    settled: charges.reduce((sum, { charged }) => plus(sum, charged), NOTHING),
    held: lines.filter(({ end }) => end === undefined || end === "unresolved").reduce(holding, NOTHING),
    unpricedCalls: unpriced.reduce((calls, one) => calls + one.calls, 0),
  };
}

const holding = (sum: Sum, { maximum }: LedgerLine): Sum => plus(sum, maximum);

interface Line {
  readonly job: string;
  line: LedgerLine;
  looks: number;
}

/** It grows with every entry, and looks nothing up by walking over what has ended. */
class Ledger {
  readonly lines: Line[] = [];
  readonly closedTogether: { readonly calls: number; readonly charged: Amount }[] = [];
  readonly #attempts = new Map<string, Line>();
  readonly #running = new Set<Line>();
  /** Those that are told apart, in the order in which they became so. */
  readonly #unresolved = new Set<Line>();
  #older: Line[] = [];

  take(event: PlainEvent): void {
    if (event.type === "lookedForLeft") return this.#look();
    const { data } = LedgerEvent.safeParse(event);
    if (data === undefined) return; // loans are no entries
    switch (data.type) {
      case "reserve":
        return this.#reserve(data);
      case "settle": {
        const { amount, nanoUsd } = data;
        return this.#end(this.#attempt(data), "settled", {
          charged: amount,
          ...(nanoUsd !== undefined && { nanoUsd }),
        });
      }
      case "release":
        return this.#end(this.#attempt(data), "released");
      case "leaveUnresolved":
        return this.#end(this.#attempt(data), "unresolved");
      case "closeHold":
        return this.#close(data);
      case "fence":
      case "setLimit":
      case "liftFence":
    }
  }

  #attempt({ job, run }: { readonly job: string; readonly run: string }): Line | undefined {
    return this.#attempts.get(`${job}\0${run}`);
  }

  #reserve({ job, run, estimate, maximum }: Extract<AttemptEvent, { readonly type: "reserve" }>): void {
    for (const line of this.#running) if (line.job === job) this.#end(line, "unresolved");
    const line = { job, line: { reservation: `${job}:${this.lines.length + 1}`, estimate, maximum }, looks: 0 };
    this.lines.push(line);
    this.#attempts.set(`${job}\0${run}`, line);
    this.#running.add(line);
  }

  #look(): void {
    for (const line of this.#running) {
      line.looks += 1;
      if (line.looks >= MOST_LOOKS) this.#end(line, "unresolved");
    }
  }

  #close({ reservation, charged }: Extract<OwnerEvent, { readonly type: "closeHold" }>): void {
    if (reservation === OLDER_UNRESOLVED) {
      for (const line of this.#older) this.#end(line, "closed");
      this.closedTogether.push({ calls: this.#older.length, charged });
      this.#older = [];
    } else {
      const number = Number(reservation.slice(reservation.lastIndexOf(":") + 1));
      this.#end(this.lines[number - 1], "closed", { charged });
    }
  }

  #end(line: Line | undefined, how: LedgerEnd, more: Partial<LedgerLine> = {}): void {
    if (line === undefined) return;
    line.line = { ...line.line, ...more, end: line.line.end === "unresolved" ? "closed" : how };
    this.#running.delete(line);
    if (how !== "unresolved") this.#unresolved.delete(line);
    else if (this.#unresolved.add(line).size > UNRESOLVED_KEPT) {
      const [oldest = line] = this.#unresolved;
      this.#unresolved.delete(oldest);
      this.#older.push(oldest);
    }
  }
}
