import type { ToolResult } from "@holdfast/protocol";
import { z } from "zod";
import { boundedText } from "./bounded-text.ts";
import { errorResult, type NamedCall } from "./call-result.ts";
import { failureOf } from "./failure.ts";
import { TaskOutput } from "./task-output.ts";

/** Characters of a question of a sub-agent that are passed on. */
export const MAX_QUESTION_CHARACTERS = 8000;

/** What is known of a task besides its status: how its last run ended, or what it asks. */
export const ReportedTask = z.union([
  z.object({ kind: z.literal("ended"), output: TaskOutput }),
  z.object({ kind: z.literal("asks"), question: z.string() }),
]);
export type ReportedTask = Readonly<z.infer<typeof ReportedTask>>;

/** The output of a task, whatever was reported; nothing readable is a failure, never an empty success. */
export function reportedOutput(childId: string, output: unknown): TaskOutput {
  const parsed = TaskOutput.safeParse(output);
  if (parsed.success && (parsed.data.status !== "completed" || parsed.data.result !== undefined)) return parsed.data;
  const message = "The task reported nothing readable.";
  return { taskId: childId, status: "failed", cause: "internal", code: "HF-5103", message };
}

/** The output that stands for a task whose actor broke. */
export const brokenOutput = (childId: string, error: unknown): TaskOutput => ({
  taskId: childId,
  status: "failed",
  ...failureOf(error, { cause: "internal", code: "HF-5103" }),
});

/** What a model is told about one task: JSON, `taskId` first, so that it can be continued whatever became of it. */
export function reportFields(childId: string, report: ReportedTask): Readonly<Record<string, unknown>> {
  if (report.kind === "asks") {
    return { taskId: childId, status: "waiting", question: boundedText(report.question, MAX_QUESTION_CHARACTERS) };
  }
  const { status, result, cause, code, message, partial } = report.output;
  if (status === "completed") return { taskId: childId, status, result };
  return { taskId: childId, status, cause: cause ?? "internal", code, message, partial };
}

/** The result of a call that waited for a task. Anything but an answer or a question is an error with a reason and the partial result. */
export function reportResult(call: NamedCall, childId: string, report: ReportedTask): ToolResult {
  const fields = reportFields(childId, report);
  if (report.kind === "asks" || report.output.status === "completed") return toldResult(call, fields);
  const { status, cause, code, message, partial } = report.output;
  const failure = {
    cause: cause ?? "internal",
    code: code ?? "HF-5103",
    message: message ?? `The task ended as ${status}.`,
  } as const;
  return errorResult(call, failure, { status, taskId: childId, partial });
}

/** A result that is plain data. */
export const toldResult = (call: NamedCall, fields: Readonly<Record<string, unknown>>): ToolResult => ({
  callId: call.callId,
  name: call.name,
  ok: true,
  content: JSON.stringify(fields),
});
