import type { ToolResult } from "@holdfast/protocol";
import { z } from "zod";
import { failureOf, type Failure } from "./failure.ts";

/** A tool call as far as its result names it. */
export interface NamedCall {
  readonly callId: string;
  readonly name: string;
}

/** Why an open call is ended before its outcome is known. */
export type Abandonment = "interrupt" | "close" | "await" | "turnTime" | "cancelTask";

const ABANDONED: Readonly<Record<Abandonment, Failure>> = {
  interrupt: {
    cause: "cancel",
    code: "HF-5203",
    message: "interrupted: stopped by a person before it was known how it ended. It may have had effects.",
  },
  close: { cause: "cancel", code: "HF-5203", message: "cancelled: the conversation was closed." },
  await: { cause: "cancel", code: "HF-5203", message: "cancelled: the conversation was deleted." },
  turnTime: {
    cause: "timeout",
    code: "HF-5204",
    message: "stopped: the time of this turn was over. It may have had effects.",
  },
  cancelTask: { cause: "cancel", code: "HF-5203", message: "cancelled" },
};

/** The result that tells the model what went wrong; `extra` stands beside cause, code and message. */
export function errorResult(
  call: NamedCall,
  failure: Failure,
  extra: Readonly<Record<string, unknown>> = {},
): ToolResult {
  const { cause, code, message } = failure;
  return {
    callId: call.callId,
    name: call.name,
    ok: false,
    content: JSON.stringify({ error: { cause, code, message, ...extra } }),
  };
}

/** The one result of a call that was ended from outside. `extra` stands beside cause, code and message. */
export function abandonedResult(
  call: NamedCall,
  why: Abandonment,
  reason?: string,
  extra: Readonly<Record<string, unknown>> = {},
): ToolResult {
  const failure = ABANDONED[why];
  const said = reason === undefined ? failure : { ...failure, message: `${failure.message}: ${reason}` };
  return errorResult(call, said, extra);
}

/** The result of a question to whoever delegated the work. */
export const answeredResult = ({ callId, name }: NamedCall, answer: string): ToolResult => ({
  callId,
  name,
  ok: true,
  content: JSON.stringify({ answer }),
});

const Reported = z.object({ ok: z.boolean(), content: z.string() });

/** The result of a local tool from the output of its job: `{ ok, content }`, text, or any JSON value. */
export function toolOutputToResult(call: NamedCall, output: unknown): ToolResult {
  const { callId, name } = call;
  const reported = Reported.safeParse(output);
  if (reported.success) return { callId, name, ok: reported.data.ok, content: reported.data.content };
  return { callId, name, ok: true, content: typeof output === "string" ? output : (JSON.stringify(output) ?? "") };
}

/** The result of a call whose job or child failed outright. */
export function childErrorToResult(call: NamedCall, error: unknown, kind: "local" | "delegate" | "ask"): ToolResult {
  const cause = kind === "local" ? "toolError" : "internal";
  return errorResult(call, failureOf(error, { cause, code: "HF-5103" }));
}
