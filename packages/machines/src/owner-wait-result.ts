import type { ToolResult } from "@holdfast/protocol";
import { errorResult, type NamedCall } from "./call-result.ts";
import type { Failure } from "./failure.ts";
import { OwnerWaitOutput } from "./owner-wait-output.ts";

/**
 * The result of an asking call from the output of its owner-wait: `{ answer, by }`, or an error that says why there is no
 * answer. A taken default is called one.
 */
export function waitOutputToResult(call: NamedCall, output: unknown): ToolResult {
  const parsed = OwnerWaitOutput.safeParse(output);
  if (!parsed.success) {
    return errorResult(call, {
      cause: "internal",
      code: "HF-5103",
      message: "The question reported nothing readable.",
    });
  }
  const { status, answer, by, action, approvals } = parsed.data;
  if (answer !== undefined) {
    return {
      callId: call.callId,
      name: call.name,
      ok: true,
      content: JSON.stringify({ answer, by, action, approvals }),
    };
  }
  const reason = parsed.data.reason === undefined ? "" : `: ${parsed.data.reason}`;
  const failures: Readonly<Record<OwnerWaitOutput["status"], Failure>> = {
    answered: { cause: "internal", code: "HF-5103", message: "The question was answered with nothing." },
    declined: { cause: "policy", code: "HF-6007", message: `declined by the one who was asked${reason}` },
    expired: {
      cause: "timeout",
      code: "HF-5204",
      message: "Nobody answered in time. Silence is not consent: do not go on as if there were an answer.",
    },
    cancelled: { cause: "cancel", code: "HF-5203", message: `The question was withdrawn${reason}` },
  };
  return errorResult(call, failures[status], { status, waitId: parsed.data.waitId });
}
