import { doubtOf, questionAbout, verdictOn } from "./call-doubt.ts";
import { outcomeToResult } from "./call-outcome.ts";
import { childOutcomeOf } from "./child-outcome.ts";
import type { ConversationContext } from "./conversation-context.ts";
import { openCallOf, type Moment } from "./conversation-reading.ts";
import { withTaskNews, type ToChild } from "./conversation-tasks.ts";
import * as turn from "./conversation-turn.ts";
import type { ToolJobInput } from "./job-input.ts";
import type { OwnerWaitInput } from "./owner-wait-input.ts";
import { OwnerWaitOutput } from "./owner-wait-output.ts";

/** What the outcome of an open call's child comes to. */
export interface Settlement {
  readonly changes: Partial<ConversationContext>;
  readonly messages: readonly ToChild[];
  /** A question to be asked. */
  readonly question?: { readonly id: string; readonly input: OwnerWaitInput };
  /** A call to be made again. */
  readonly again?: { readonly id: string; readonly input: ToolJobInput };
  /** A question whose outcome is taken in. */
  readonly consumed?: { readonly waitId: string; readonly callId: string };
}

/** @returns undefined when the event is no outcome of an open call */
export function settlementOf({ context, event }: Moment): Settlement | undefined {
  const call = openCallOf({ context, event });
  const outcome = childOutcomeOf(event);
  if (call === undefined || outcome === undefined) return undefined;
  const { kind, callId, childId, name, input, doubt, asked = 0 } = call;
  if (kind !== "local" && kind !== "delegate" && kind !== "ask") return undefined;
  const found = input === undefined || doubt !== undefined ? undefined : doubtOf(childId, asked, outcome);
  if (found !== undefined) {
    const question = { id: found.question, input: questionAbout({ callId, name, input }, found, context) };
    return { changes: { calls: turn.withDoubt(context, childId, found) }, messages: [], question };
  }
  // It leaves when this transition is stored, and not before.
  const told: readonly ToChild[] =
    event.type === "waitSettled" ? [{ to: outcome.childId, event: { type: "consumed" } }] : [];
  const isWait = (kind === "ask" || doubt !== undefined) && outcome.kind === "done";
  const wait = isWait ? OwnerWaitOutput.safeParse(outcome.output).data : undefined;
  const consumed = wait && { consumed: { waitId: wait.waitId, callId } };
  const result =
    doubt === undefined ? outcomeToResult({ callId, name, kind }, outcome) : verdictOn(call, doubt, outcome);
  if (result === "run") {
    const job: ToolJobInput = { agent: context.agent.name, callId, name, input: input ?? {}, crashPolicy: "unsafe" };
    const changes = { calls: turn.withoutDoubt(context, childId) };
    return { changes, messages: told, again: { id: childId, input: job }, ...consumed };
  }
  const calls = turn.withResult(context, childId, result);
  const { changes, messages } = withTaskNews({ ...context, calls }, event);
  return { changes: { calls, ...changes }, messages: [...messages, ...told], ...consumed };
}
