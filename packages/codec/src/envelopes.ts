import { Envelope, JournalBatch, MessageReply, RuntimeFault } from "@holdfast/protocol";
import type { z } from "zod";
import { assertEnvelopeSize } from "./sizes.ts";
import type { Unreadable } from "./unreadable.ts";
import { formatPath, type PathStep } from "./value-path.ts";

/** Messages have no frame: msgpack with tagged values, at most ENVELOPE_LIMIT_BYTES. */
export interface Messages {
  /** @throws RuntimeFault HF-2001 when something in it cannot be stored; HF-1001 when it is too large */
  readonly encodeEnvelope: (envelope: Envelope) => Uint8Array;
  /** @throws RuntimeFault HF-1001, with the path of what does not fit */
  readonly decodeEnvelope: (bytes: Uint8Array) => Envelope;
  /** @throws RuntimeFault HF-2001 when something in it cannot be stored; HF-1001 when it is too large */
  readonly encodeJournalBatch: (batch: JournalBatch) => Uint8Array;
  /** @throws RuntimeFault HF-1001, with the path of what does not fit */
  readonly decodeJournalBatch: (bytes: Uint8Array) => JournalBatch;
  /** @throws RuntimeFault HF-2001 when something in it cannot be stored; HF-1001 when it is too large */
  readonly encodeReply: (reply: MessageReply) => Uint8Array;
  /** @throws RuntimeFault HF-1001, with the path of what does not fit */
  readonly decodeReply: (bytes: Uint8Array) => MessageReply;
}

export type EncodeValue = (value: unknown, what: string) => Uint8Array;
export type DecodeValue = (bytes: Uint8Array, unreadable: Unreadable) => unknown;

export function createMessages(encode: EncodeValue, decode: DecodeValue): Messages {
  const write = (value: unknown, what: string): Uint8Array => {
    const bytes = encode(value, what);
    assertEnvelopeSize(what, bytes.length);
    return bytes;
  };
  const read = <T>(bytes: Uint8Array, schema: z.ZodType<T>, what: string): T => {
    assertEnvelopeSize(what, bytes.length);
    const refused = refusing(what);
    const parsed = schema.safeParse(decode(bytes, refused));
    if (!parsed.success) throw refused(schemaMismatch(parsed.error));
    return parsed.data;
  };

  return {
    encodeEnvelope: (envelope) => write(envelope, `Envelope ${envelope.id}`),
    decodeEnvelope: (bytes) => read(bytes, Envelope, "Envelope"),
    encodeJournalBatch: (batch) => write(batch, `Journal entries of ${batch[0]?.key ?? "no actor"}`),
    decodeJournalBatch: (bytes) => read(bytes, JournalBatch, "Journal entries"),
    encodeReply: (reply) => write(reply, `Reply to ${reply.id}`),
    decodeReply: (bytes) => read(bytes, MessageReply, "Reply"),
  };
}

/** First mismatch as `path: what zod says`. Never quotes the value. */
export function schemaMismatch(error: z.ZodError): string {
  const issue = error.issues[0];
  const path = (issue?.path ?? []).map((step): PathStep => (typeof step === "symbol" ? String(step) : step));
  return `${issue?.message ?? "does not match the schema"} at ${formatPath(path)}`;
}

const refusing =
  (what: string): Unreadable =>
  (reason) =>
    new RuntimeFault(
      "HF-1001",
      `${what}: ${reason}. Send msgpack as docs/protocol.md describes it, or use the client of the same release.`,
      { facts: { reason } },
    );
