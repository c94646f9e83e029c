/** `bad-log` stops the ledger: it would rather not count than count wrongly. */
export type LedgerFaultCode = "bad-environment" | "bad-log" | "cannot-listen" | "cannot-write";

/**
 * Thrown when the ledger cannot start, cannot write, or cannot trust its log.
 *
 * The message says which file, line or setting, what was found and what to do.
 */
export class LedgerFault extends Error {
  override readonly name = "LedgerFault";
  readonly code: LedgerFaultCode;

  constructor(code: LedgerFaultCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
