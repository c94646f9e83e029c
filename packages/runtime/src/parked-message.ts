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
  /** When it was first stored, broker time, Unix ms. Absent in copies of older builds. */
  sinceMs: z.number().optional(),
});

/**
 * A message as it lies in the parked stream: with what its subject said about its sender.
 * Only nodes may write there, so the copy is trusted as the subject was (F35).
 */
export function encodeParked(codec: Codec, message: InboxMessage): Uint8Array {
  const { principal, messageId, lane, bytes, storedAtMs } = message;
  return codec.encodeValue({
    v: 1,
    principal: principal === undefined ? undefined : principalToken(principal),
    messageId,
    lane,
    bytes,
    sinceMs: storedAtMs,
  });
}

/** The same copy without the sender's place on its link, for a message that its link has passed over: its id alone says whether it was taken. */
export function withoutLink(codec: Codec, bytes: Uint8Array): Uint8Array {
  const parsed = Parked.safeParse(codec.decodeValue(bytes));
  if (!parsed.success || parsed.data.principal !== undefined) return bytes;
  const envelope = codec.decodeEnvelope(parsed.data.bytes);
  if (envelope.kind !== "send" || envelope.from === undefined) return bytes;
  const { from: _passedOver, ...unlinked } = envelope;
  return codec.encodeValue({ ...parsed.data, bytes: codec.encodeEnvelope(unlinked) });
}

/** @returns the message as it was, also in its age, but with its sequence in the parked stream; undefined when the bytes are not one */
export function tryParked(codec: Codec, parked: InboxMessage): InboxMessage | undefined {
  const parsed = Parked.safeParse(codec.decodeValue(parked.bytes));
  if (!parsed.success) return undefined;
  const { principal, messageId, lane, bytes, sinceMs } = parsed.data;
  return {
    ...parked,
    lane,
    messageId,
    bytes,
    storedAtMs: sinceMs ?? parked.storedAtMs,
    principal: principal === undefined ? undefined : parsePrincipalToken(principal),
  };
}
