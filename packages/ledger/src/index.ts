export { countLedger, countLedgerFile, LedgerFigures } from "./count-ledger.ts";
export { LedgerFault } from "./ledger-fault.ts";
export type { LedgerFaultCode } from "./ledger-fault.ts";
export { LedgerLine } from "./ledger-line.ts";
export type { LedgerPlant } from "./ledger-book.ts";
export { startLedger } from "./start-ledger.ts";
export type { Ledger, LedgerOptions } from "./start-ledger.ts";
