import type { Codec } from "@holdfast/codec";
import { parsePrincipalToken, principalToken } from "@holdfast/protocol";
import { z } from "zod";
import type { InboxMessage } from "./ports/index.ts";

const Parked = z.object({
  v: z.literal(1),
  principal: z.string().optional(),
  messageId: z.string(),
  lane: z.enum(["inbox", "control"]),
  bytes: z.instanceof(Uint8Array),
});

/**
 * A message as it lies in the parked stream: with what its subject said about its sender.
 * Only nodes may write there, so the copy is trusted as the subject was (F35).
 */
export function encodeParked(codec: Codec, message: InboxMessage): Uint8Array {
  const { principal, messageId, lane, bytes } = message;
  return codec.encodeValue({
    v: 1,
    principal: principal === undefined ? undefined : principalToken(principal),
    messageId,
    lane,
    bytes,
  });
}

/** @returns the message as it was, with its sequence in the parked stream; undefined when the bytes are not one */
export function tryParked(codec: Codec, parked: InboxMessage): InboxMessage | undefined {
  const parsed = Parked.safeParse(codec.decodeValue(parked.bytes));
  if (!parsed.success) return undefined;
  const { principal, messageId, lane, bytes } = parsed.data;
  return {
    ...parked,
    lane,
    messageId,
    bytes,
    principal: principal === undefined ? undefined : parsePrincipalToken(principal),
  };
}
