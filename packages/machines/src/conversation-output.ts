import { z } from "zod";
import { Failure } from "./failure.ts";

/** Model calls and tokens of a conversation so far, without those of its tasks. */
export const Usage = z.object({ modelCalls: z.number(), inputTokens: z.number(), outputTokens: z.number() });
export type Usage = Readonly<z.infer<typeof Usage>>;

const base = { conversationId: z.string(), usage: Usage };

/** How a conversation ended. One that no task waits for ends only by `close`. */
export const ConversationOutput = z.discriminatedUnion("outcome", [
  /** `text`: the final answer, bounded. */
  z.object({ ...base, outcome: z.literal("answered"), text: z.string() }),
  /** `partial`: the last text of the model, bounded; absent when there was none. */
  z.object({ ...base, outcome: z.literal("failed"), failure: Failure, partial: z.string().optional() }),
  z.object({ ...base, outcome: z.literal("closed"), partial: z.string().optional() }),
]);
export type ConversationOutput = Readonly<z.infer<typeof ConversationOutput>>;
