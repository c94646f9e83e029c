import { isErrorCode, RuntimeFault } from "@holdfast/protocol";
import type { SendResult } from "../message-sender.ts";

/** What a refusal of a wallet means to whoever asked. */
export function faultOfWallet({ code, reason, facts }: Extract<SendResult, { kind: "refused" }>): RuntimeFault {
  return new RuntimeFault(isErrorCode(code) ? code : "HF-5305", reason, facts === undefined ? {} : { facts });
}
