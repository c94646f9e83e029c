import { z } from "zod";
import { LedgerFault } from "./ledger-fault.ts";

const Id = z.string().min(1).max(1024);
const at = z.int().nonnegative();

/** Someone asked for an effect. `attempt` is 1 for the first attempt of the log, 2 for the next, … */
export const AttemptLine = z.object({
  line: z.literal("attempt"),
  attempt: z.int().positive(),
  /** Unix time in milliseconds. */
  at,
  callId: Id,
  idempotencyKey: Id,
  /** What sort of effect, in the caller's words. */
  kind: z.string().min(1),
  detail: z.json().optional(),
  /** Which node asked, in the caller's words. */
  node: z.string().optional(),
});
export type AttemptLine = Readonly<z.infer<typeof AttemptLine>>;

/**
 * The effect of an attempt happened. Call and key are not repeated here: whoever counts looks them
 * up in the attempt, so a line cannot claim one thing and its attempt another.
 */
const AppliedLine = z.object({ line: z.literal("applied"), attempt: z.int().positive(), at });

/** A call ended; what arrives for it from here on is late. */
export const SettlementLine = z.object({
  line: z.literal("settlement"),
  at,
  callId: Id,
  /** `completed` promises an applied effect; any other word promises nothing. */
  outcome: z.string().min(1),
});

/** One line of the log, in the order things happened. */
export const LedgerLine = z.discriminatedUnion("line", [AttemptLine, AppliedLine, SettlementLine]);
export type LedgerLine = Readonly<z.infer<typeof LedgerLine>>;

/**
 * Parses one line of a log.
 *
 * @param number  its place in the log, from 1, for the message
 * @throws LedgerFault (`bad-log`) when it is not a ledger line
 */
export function parseLedgerLine(text: string, number: number): LedgerLine {
  let cause: unknown;
  try {
    const parsed = LedgerLine.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    cause = parsed.error;
  } catch (error) {
    cause = error;
  }
  throw new LedgerFault(
    "bad-log",
    `Line ${number} of the ledger is not a ledger line. Do not count with this log; keep it to find out who wrote to it.`,
    cause,
  );
}

/** A line as it is written, with its line feed. */
export function formatLedgerLine(line: LedgerLine): string {
  return `${JSON.stringify(line)}\n`;
}
