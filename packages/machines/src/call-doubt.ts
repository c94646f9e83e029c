import type { ToolResult } from "@holdfast/protocol";
import { z } from "zod";
import { boundedText } from "./bounded-text.ts";
import { errorResult, type NamedCall } from "./call-result.ts";
import type { ChildOutcome } from "./child-outcome.ts";
import { Failure, failureOf } from "./failure.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import { OwnerWaitOutput } from "./owner-wait-output.ts";

// A call of an `unsafe` tool whose node died may have happened, and is not made again by itself: a person is asked.
//   D1 asked once for each time that nobody knows; the call has one result, whatever is answered, and however often it is made
//   D2 without an answer (declined, withdrawn, the step was ended) its result is what its job said: it may have happened

/** What stands behind a call that may have happened. */
export const Doubt = z.object({
  /** Child id of the question. */
  question: z.string(),
  error: Failure,
});
export type Doubt = Readonly<z.infer<typeof Doubt>>;

const AMBIGUOUS = "HF-3010";

/**
 * The doubt that an outcome leaves; undefined for every outcome that says what happened.
 *
 * @param asked  questions about this call before
 */
export function doubtOf(childId: string, asked: number, outcome: ChildOutcome): Doubt | undefined {
  if (outcome.kind !== "failed") return undefined;
  const error = failureOf(outcome.error, { cause: "toolError", code: "HF-5103" });
  return error.code === AMBIGUOUS ? { question: `doubt-${asked + 1}-${childId}`, error } : undefined;
}

const Answer = z.object({ action: z.enum(["happened", "run", "report"]), result: z.string().optional() });

const MAX_SHOWN_CHARACTERS = 2000;

/** Asks a person whether a call happened. */
export function questionAbout(
  { callId, name, input }: NamedCall & { readonly input: unknown },
  { error }: Doubt,
  asker: { readonly conversationId: string; readonly agent: { readonly name: string } },
): OwnerWaitInput {
  return {
    question:
      `Did this call of ${name} happen? Its node died while it ran: ${boundedText(JSON.stringify(input), MAX_SHOWN_CHARACTERS)}\n` +
      'Answer {"action": "happened", "result": "<what came of it>"}, {"action": "run"} to have it run again, ' +
      'or {"action": "report"} to tell the agent that nobody knows.',
    reason: error.message,
    answerSchema: {
      type: "object",
      properties: { action: { enum: ["happened", "run", "report"] }, result: { type: "string", maxLength: 15_000 } },
      required: ["action"],
      additionalProperties: false,
    },
    assignee: "owner",
    onExpiry: "fail",
    conversationId: asker.conversationId,
    agent: asker.agent.name,
    callId,
  };
}

/** What a call in doubt comes to by the outcome of its question: its result, or `run`. Machine and transcript both take it from here. */
export function verdictOn(call: NamedCall, doubt: Doubt, outcome: ChildOutcome): ToolResult | "run" {
  const wait = outcome.kind === "done" ? OwnerWaitOutput.safeParse(outcome.output).data : undefined;
  const { data } = Answer.safeParse(wait?.answer);
  if (data?.action === "run") return "run";
  if (data?.action !== "happened") return doubtfulResult(call, doubt); // D2
  const { callId, name } = call;
  return { callId, name, ok: true, content: data.result ?? JSON.stringify({ happened: true }) };
}

/** D2. */
export const doubtfulResult = (call: NamedCall, { error }: Doubt): ToolResult => errorResult(call, error);
