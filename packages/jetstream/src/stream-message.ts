import type { Msg } from "@nats-io/transport-node";

/** Where a delivered message stands; read from its reply subject. */
export interface Delivery {
  readonly streamSeq: number;
  readonly consumerSeq: number;
  /** Broker time, Unix ms. */
  readonly storedAtMs: number;
  /** Messages the consumer still had to deliver after this one. */
  readonly pending: number;
}

/** A message of a stream as a reader hands it over. Bytes are empty when only headers were asked for. */
export interface StreamMessage {
  readonly subject: string;
  readonly seq: number;
  readonly storedAtMs: number;
  readonly bytes: Uint8Array;
  /** Value of a header, exact spelling; undefined when it is not there. */
  header(name: string): string | undefined;
}

/**
 * Parses `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>`, or the longer form with domain and
 * account before the stream.
 *
 * @returns undefined when it is not such a subject
 */
export function parseDelivery(reply: string): Delivery | undefined {
  const tokens = reply.split(".");
  const first = tokens.length === 9 ? 4 : 6;
  const [, streamSeq, consumerSeq, nanoseconds, pending] = tokens.slice(first);
  if (tokens[1] !== "ACK" || nanoseconds === undefined || pending === undefined) return undefined;
  return {
    streamSeq: Number(streamSeq),
    consumerSeq: Number(consumerSeq),
    storedAtMs: Number(nanoseconds.slice(0, -6)),
    pending: Number(pending),
  };
}

export function toStreamMessage(message: Msg, delivery: Delivery): StreamMessage {
  return {
    subject: message.subject,
    seq: delivery.streamSeq,
    storedAtMs: delivery.storedAtMs,
    bytes: message.data,
    header: (name) => {
      const { headers } = message;
      if (headers === undefined) return undefined;
      const value = headers.get(name);
      return value !== "" || headers.has(name) ? value : undefined;
    },
  };
}
