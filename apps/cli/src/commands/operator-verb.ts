import type { CommandResult } from "@holdfast/client";
import { isErrorCode, RuntimeFault, type OperatorVerb } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { targetOf } from "./target.ts";

export interface VerbOptions {
  readonly message?: string | undefined;
  /** How long to wait for a node, ms. */
  readonly timeout: string;
}

/** Leaves a command for the owner of an actor, and waits for its outcome. @throws RuntimeFault with the code of a refusal */
export async function askOwner(
  { holdfast }: Client,
  verb: OperatorVerb,
  target: string,
  { message, timeout }: VerbOptions,
): Promise<{ readonly key: string; readonly outcome: CommandResult }> {
  const key = targetOf(target, (type, id) => holdfast.key(type, id));
  const outcome = await holdfast.stuck.command(verb, key, { messageId: message, timeoutMs: Number(timeout) });
  if (outcome.kind === "refused")
    throw new RuntimeFault(isErrorCode(outcome.code) ? outcome.code : "HF-3105", outcome.reason);
  return { key, outcome };
}

export const outcomeText = (outcome: CommandResult): string =>
  outcome.kind === "done" ? outcome.what : "stored; it is carried out by the next node that owns the actor";
