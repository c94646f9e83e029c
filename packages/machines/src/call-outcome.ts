import type { ToolResult } from "@holdfast/protocol";
import { childErrorToResult, toolOutputToResult, type NamedCall } from "./call-result.ts";
import type { ChildOutcome } from "./child-outcome.ts";
import { waitOutputToResult } from "./owner-wait-result.ts";
import { taskOutputToResult } from "./task-result.ts";

type Kind = "local" | "delegate" | "ask";

const READERS: Readonly<Record<Kind, (call: NamedCall, output: unknown) => ToolResult>> = {
  local: toolOutputToResult,
  delegate: taskOutputToResult,
  ask: waitOutputToResult,
};

/** The one result of a call from the way in which its child ended. Machine and transcript both take it from here. */
export function outcomeToResult(call: NamedCall & { readonly kind: Kind }, outcome: ChildOutcome): ToolResult {
  return outcome.kind === "done"
    ? READERS[call.kind](call, outcome.output)
    : childErrorToResult(call, outcome.error, call.kind);
}
