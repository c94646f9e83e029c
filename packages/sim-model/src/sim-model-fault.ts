/** What went wrong when the simulated model could not start; never used for answers to a request. */
export type SimModelFaultCode = "bad-environment" | "cannot-listen";

/**
 * Thrown when the simulated model cannot start.
 *
 * The message says which setting, what was found and what to do; `cause` holds the system's error.
 */
export class SimModelFault extends Error {
  override readonly name = "SimModelFault";
  readonly code: SimModelFaultCode;

  constructor(code: SimModelFaultCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
