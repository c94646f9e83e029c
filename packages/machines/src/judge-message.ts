import { MAX_PENDING_MESSAGES, pendingMessages, type ConversationContext } from "./conversation-context.ts";
import type { Refusal } from "./judge-answer.ts";

export type MessageVerdict = { readonly kind: "ok" } | { readonly kind: "duplicate" } | Refusal;

/**
 * Whether a user message is accepted now. The machine's guard asks it, and so does whoever tells the sender.
 *
 * `duplicate`: a message of this id is among the last accepted ones; for its sender that is a success.
 */
export function judgeMessage(
  context: Pick<ConversationContext, "messages" | "messagesTaken" | "messageIds">,
  messageId: string,
): MessageVerdict {
  if (context.messageIds.includes(messageId)) return { kind: "duplicate" };
  if (pendingMessages(context) >= MAX_PENDING_MESSAGES) {
    const reason = `${MAX_PENDING_MESSAGES} messages already wait for the next model call. Send it again later.`;
    return { kind: "refused", code: "HF-3005", why: "busy", reason };
  }
  return { kind: "ok" };
}
