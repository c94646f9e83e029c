import { readFile } from "node:fs/promises";
import { z } from "zod";
import { LedgerFault } from "./ledger-fault.ts";
import { parseLedgerLine } from "./ledger-line.ts";
import type { AttemptLine } from "./ledger-line.ts";

/** What a log adds up to. A system that keeps its promises has `duplicateEffects` 0 and `lost` 0. */
export const LedgerFigures = z.object({
  attempts: z.int(),
  /** Distinct calls that made an attempt or were settled. */
  calls: z.int(),
  /** Effects that happened; two for one key count twice. */
  applied: z.int(),
  /** Distinct calls settled. */
  settled: z.int(),
  /** Keys applied twice + calls applied under two keys + effects after their call was settled. */
  duplicateEffects: z.int(),
  /** Calls settled as `completed` for which no effect ever happened. */
  lost: z.int(),
  details: z.object({
    /** Each key once, however often it was applied. */
    keysAppliedTwice: z.array(z.string()),
    /** Calls that asked under two different keys: the ledger cannot tell their attempts apart. */
    callsWithTwoKeys: z.array(z.string()),
    effectsAfterSettlement: z.array(z.object({ callId: z.string(), attempt: z.int() })),
    lostCalls: z.array(z.string()),
    /** Not counted as duplicates: an attempt after settlement that changed nothing. */
    attemptsAfterSettlement: z.int(),
    /** Not counted as duplicates: calls settled again with another outcome. */
    callsWithTwoOutcomes: z.array(z.string()),
  }),
});
export type LedgerFigures = Readonly<z.infer<typeof LedgerFigures>>;

/**
 * Counts a log from its raw lines alone: pure, and knows nothing of what the server believed.
 *
 * The order of the lines is the order of events. Only the first settlement of a call ends it.
 *
 * @param lines  JSON texts without line feeds, oldest first
 * @throws LedgerFault (`bad-log`) when a line is malformed, an attempt number is out of order, or an
 *   effect belongs to no earlier attempt
 */
export function countLedger(lines: Iterable<string>): LedgerFigures {
  const attempts: AttemptLine[] = [];
  const keysOfCall = new Map<string, Set<string>>();
  const timesApplied = new Map<string, number>();
  const callsWithEffect = new Set<string>();
  const outcomesOfCall = new Map<string, string[]>();
  const effectsAfterSettlement: { callId: string; attempt: number }[] = [];
  let attemptsAfterSettlement = 0;

  let number = 0;
  for (const text of lines) {
    number += 1;
    const line = parseLedgerLine(text, number);
    switch (line.line) {
      case "attempt": {
        if (line.attempt !== attempts.length + 1) {
          throw outOfOrder(number, `attempt ${attempts.length + 1}`, `attempt ${line.attempt}`);
        }
        attempts.push(line);
        addTo(keysOfCall, line.callId, line.idempotencyKey);
        if (outcomesOfCall.has(line.callId)) attemptsAfterSettlement += 1;
        break;
      }
      case "applied": {
        const source = attempts[line.attempt - 1];
        if (source === undefined) {
          throw outOfOrder(number, "an earlier attempt", `an effect of attempt ${line.attempt}`);
        }
        const { callId, idempotencyKey, attempt } = source;
        timesApplied.set(idempotencyKey, (timesApplied.get(idempotencyKey) ?? 0) + 1);
        callsWithEffect.add(callId);
        if (outcomesOfCall.has(callId)) effectsAfterSettlement.push({ callId, attempt });
        break;
      }
      case "settlement": {
        const outcomes = outcomesOfCall.get(line.callId) ?? [];
        outcomesOfCall.set(line.callId, [...outcomes, line.outcome]);
        break;
      }
    }
  }

  const keysAppliedTwice = keysWhere(timesApplied, (times) => times > 1);
  const callsWithTwoKeys = keysWhere(keysOfCall, (keys) => keys.size > 1);
  const lostCalls = keysWhere(outcomesOfCall, ([first]) => first === "completed").filter(
    (callId) => !callsWithEffect.has(callId),
  );
  return {
    attempts: attempts.length,
    calls: new Set([...keysOfCall.keys(), ...outcomesOfCall.keys()]).size,
    applied: [...timesApplied.values()].reduce((sum, times) => sum + times, 0),
    settled: outcomesOfCall.size,
    duplicateEffects: keysAppliedTwice.length + callsWithTwoKeys.length + effectsAfterSettlement.length,
    lost: lostCalls.length,
    details: {
      keysAppliedTwice,
      callsWithTwoKeys,
      effectsAfterSettlement,
      lostCalls,
      attemptsAfterSettlement,
      callsWithTwoOutcomes: keysWhere(outcomesOfCall, (all) => new Set(all).size > 1),
    },
  };
}

/**
 * Counts a log on disk, as {@link countLedger} does; a last line without a line feed was never
 * answered and does not count.
 */
export async function countLedgerFile(file: string): Promise<LedgerFigures> {
  const text = await readFile(file, "utf8");
  return countLedger(text.split("\n").slice(0, -1));
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function keysWhere<T>(map: ReadonlyMap<string, T>, holds: (value: T) => boolean): string[] {
  return [...map].filter(([, value]) => holds(value)).map(([key]) => key);
}

function outOfOrder(number: number, expected: string, found: string): LedgerFault {
  return new LedgerFault(
    "bad-log",
    `Line ${number} of the ledger: expected ${expected}, found ${found}. Do not count with this log; it lacks a line or two ledgers wrote to it.`,
  );
}
