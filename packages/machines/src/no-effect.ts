import { AgentDefinition, WalletState, type PlainEvent } from "@holdfast/protocol";
import { z } from "zod";
import { topState } from "./conversation-status.ts";
import type { Refusal } from "./judge-answer.ts";
import { judgeWaitEvent } from "./judge-wait-event.ts";
import { judgeFork } from "./judge-fork.ts";
import { judgeMessage } from "./judge-message.ts";
import { judgeWallet, type WalletRefusal } from "./judge-wallet.ts";
import { OwnerWaitContext } from "./owner-wait-context.ts";
import { OwnerWaitEvent } from "./owner-wait-event.ts";
import { judgeModel } from "./turn-budget.ts";
import { WalletEvent } from "./wallet-event.ts";

const Queue = z.looseObject({ messages: z.number(), messagesTaken: z.number(), messageIds: z.array(z.string()) });
const Forked = z.looseObject({ forks: z.array(z.string()).optional() });
const Payer = z.looseObject({ agent: AgentDefinition.pick({ model: true, limits: true, prices: true }) });
const Message = z.looseObject({ messageId: z.string() });

/** What became of an outside event that changed nothing. `duplicate`: it was applied before. */
export type NoEffect =
  | Refusal
  | WalletRefusal
  | { readonly kind: "duplicate" }
  | { readonly kind: "noEffect"; readonly reason: string };

/**
 * Why an outside event changed nothing, for its sender.
 *
 * @param context  context of the snapshot that the event met
 * @param value    state value of that snapshot
 */
export function noEffectOf(type: string, context: unknown, value: unknown, event: PlainEvent): NoEffect {
  const reason = `${event.type} has no effect on a ${type} in state ${topState(value)}.`;
  if (type === "ownerWait") {
    const wait = OwnerWaitContext.safeParse(context);
    const sent = OwnerWaitEvent.safeParse(event);
    const verdict = wait.success && sent.success ? judgeWaitEvent(wait.data, sent.data) : undefined;
    if (verdict !== undefined && verdict.kind !== "ok") return verdict;
  }
  if (type === "conversation" && event.type === "userMessage") {
    const queue = Queue.safeParse(context);
    const message = Message.safeParse(event);
    const verdict = queue.success && message.success ? judgeMessage(queue.data, message.data.messageId) : undefined;
    if (verdict !== undefined && verdict.kind !== "ok") return verdict;
    // Nobody will ever take it in, and its sender must not believe otherwise.
    if (["closing", "awaiting"].includes(topState(value))) {
      const ends = `The conversation is about to end and takes no more messages. Start another one, or fork it.`;
      return { kind: "refused", code: "HF-3009", why: "closed", reason: ends };
    }
  }
  if (type === "conversation" && event.type === "switchModel") {
    const known = Payer.safeParse(context);
    const verdict = known.success ? judgeModel(known.data.agent, String(event["model"])) : undefined;
    if (verdict !== undefined && verdict.kind !== "ok") return verdict;
  }
  if (type === "conversation" && event.type === "forked") {
    const known = Forked.safeParse(context);
    const fork = typeof event["fork"] === "string" ? event["fork"] : "";
    const verdict = judgeFork(known.data?.forks ?? [], fork);
    if (verdict.kind !== "ok") return verdict;
  }
  if (type === "wallet") {
    const wallet = WalletState.safeParse(context);
    const sent = WalletEvent.safeParse(event);
    // Nothing may pass for a success that is none: whoever is told "already so" spends.
    if (!wallet.success || !sent.success)
      return { kind: "refused", code: "HF-5305", reason: `A wallet does not take ${event.type} like this.`, facts: {} };
    const verdict = judgeWallet(wallet.data, sent.data);
    if (verdict.kind !== "ok") return verdict;
  }
  return { kind: "noEffect", reason };
}
