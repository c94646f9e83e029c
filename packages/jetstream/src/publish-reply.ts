import { z } from "zod";
import type { RawReply } from "./request-channel.ts";

const ApiError = z.object({
  code: z.number(),
  err_code: z.number().default(0),
  description: z.string().default(""),
});

const PublishAnswer = z.object({
  stream: z.string().default(""),
  seq: z.number().optional(),
  duplicate: z.boolean().default(false),
  error: ApiError.optional(),
});

/**
 * What one attempt to store a message came to. `stored`: acknowledged. `rejected`: the stream said no, this attempt stored nothing.
 * `notStored`: no stream took part, this attempt stored nothing. `ambiguous`: may be stored, now or later.
 */
export type PublishAttempt =
  | { readonly kind: "stored"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "rejected"; readonly code: number; readonly reason: string }
  | { readonly kind: "notStored"; readonly reason: string }
  | { readonly kind: "denied"; readonly reason: string }
  | { readonly kind: "tooLarge"; readonly maxBytes: number }
  | { readonly kind: "ambiguous"; readonly reason: string };

const decoder = new TextDecoder();

/** Reads the answer to a publish. Something unreadable counts as ambiguous: it did come from somebody. */
export function readPublishReply(reply: RawReply): PublishAttempt {
  switch (reply.kind) {
    case "answer":
      return readAnswer(reply.bytes);
    case "noResponders":
      return { kind: "notStored", reason: "no stream takes this subject, or it has no leader now" };
    case "notSent":
      return { kind: "notStored", reason: reply.reason };
    case "lost":
      return { kind: "ambiguous", reason: reply.reason };
    case "denied":
    case "tooLarge":
      return reply;
  }
}

/** What nearly every answer is, word for word; anything else is parsed. */
const ACKNOWLEDGED = /^\{"stream":"[^"\\]+", ?"seq":([0-9]{1,15})\}$/;

function readAnswer(bytes: Uint8Array): PublishAttempt {
  const text = decoder.decode(bytes);
  const seq = ACKNOWLEDGED.exec(text)?.[1];
  if (seq !== undefined) return { kind: "stored", seq: Number(seq), duplicate: false };
  const answer = parseAnswer(bytes);
  if (answer?.error !== undefined) {
    return { kind: "rejected", code: answer.error.err_code, reason: answer.error.description };
  }
  if (answer?.seq === undefined || answer.stream === "") {
    return { kind: "ambiguous", reason: "unreadable acknowledgement" };
  }
  return { kind: "stored", seq: answer.seq, duplicate: answer.duplicate };
}

function parseAnswer(bytes: Uint8Array): z.infer<typeof PublishAnswer> | undefined {
  try {
    return PublishAnswer.safeParse(JSON.parse(decoder.decode(bytes))).data;
  } catch {
    // Not JSON: the caller treats it as ambiguous.
    return undefined;
  }
}
