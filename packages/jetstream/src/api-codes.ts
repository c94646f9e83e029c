/**
 * JetStream error codes (`err_code`) this package gives a meaning to. Vendor numbers stop here.
 * Source: nats-server `errors.json`.
 */
export const API_CODE = {
  systemUnavailable: 10008,
  messageNotFound: 10037,
  messageTooLarge: 10054,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
} as const;

/** Both say that another write moved the subject first; 10164 names no sequence and is what most losers on a replicated stream get. */
export const isConflict = (code: number): boolean =>
  code === API_CODE.wrongLastSequence || code === API_CODE.wrongLastSequenceUnknown;
