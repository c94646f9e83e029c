import { isErrorCode, RuntimeFault } from "@holdfast/protocol";

/** What a conversation refused, as an error: a code that this build does not know keeps its words. */
export const faultOfRefusal = (
  id: string,
  { code, reason }: { readonly code: string; readonly reason: string },
): RuntimeFault => new RuntimeFault(isErrorCode(code) ? code : "HF-3001", `Conversation ${id}: ${reason}`);

/** Why a question aside has no answer. */
export function faultOfFailure(
  id: string,
  failure: { readonly cause: string; readonly code: string; readonly message: string } | undefined,
): RuntimeFault {
  if (failure === undefined) return new RuntimeFault("HF-5203", `Question ${id}: it was closed without an answer.`);
  const { cause, code, message } = failure;
  return new RuntimeFault(isErrorCode(code) ? code : "HF-5003", `Question ${id}: ${message}`, { facts: { cause } });
}
