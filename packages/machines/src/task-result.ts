import type { ToolResult } from "@holdfast/protocol";
import { errorResult, type NamedCall } from "./call-result.ts";
import { TaskOutput } from "./task-output.ts";

/**
 * The result of a delegating call from the output of its task: the sub-agent's answer as it is, or an error with cause,
 * reason, ids and whatever partial result there is. Anything but a completed task is an error, never an empty success.
 */
export function taskOutputToResult(call: NamedCall, output: unknown): ToolResult {
  const parsed = TaskOutput.safeParse(output);
  if (!parsed.success) {
    return errorResult(call, { cause: "internal", code: "HF-5103", message: "The task reported nothing readable." });
  }
  const { status, result, taskId, conversationId, partial } = parsed.data;
  if (status === "completed" && result !== undefined) {
    return { callId: call.callId, name: call.name, ok: true, content: result };
  }
  const failure = {
    cause: parsed.data.cause ?? "internal",
    code: parsed.data.code ?? "HF-5103",
    message: parsed.data.message ?? `The task ended as ${status}.`,
  } as const;
  return errorResult(call, failure, { status, taskId, conversationId, partial });
}
