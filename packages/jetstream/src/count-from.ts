import { nanos } from "@nats-io/transport-node";
import { z } from "zod";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";
import { findStream, streamMissing } from "./stream-info.ts";

const Counted = z.object({ name: z.string(), num_pending: z.number() });

/** A consumer that only counts is removed at once; this is for the case that its removal gets lost. */
const INACTIVE_MS = 5000;

/**
 * How many messages of some subjects a stream holds from a sequence on. The leader counts; nothing is delivered.
 * @throws RuntimeFault HF-4006 when the stream does not exist, HF-4007 without permission, HF-4008 when nobody answered
 */
export async function countFrom(
  link: Link,
  options: {
    readonly stream: string;
    readonly filters: readonly string[];
    readonly fromSeq: number;
    /** Unique name of the consumer that counts: letters, digits, underscore. */
    readonly name: string;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<number> {
  const { stream, filters, fromSeq, name, signal } = options;
  const config = {
    name,
    ack_policy: "none",
    inactive_threshold: nanos(INACTIVE_MS),
    mem_storage: true,
    num_replicas: 1,
    ...(fromSeq <= 1 ? { deliver_policy: "all" } : { deliver_policy: "by_start_sequence", opt_start_seq: fromSeq }),
    filter_subjects: filters,
  };
  const api = `CONSUMER.CREATE.${stream}.${name}`;
  const result = await apiRequest(link, { api, body: { stream_name: stream, config }, answer: Counted, signal });
  if (result.kind === "refused") throw streamMissing(stream);
  link.publish(`$JS.API.CONSUMER.DELETE.${stream}.${name}`, new Uint8Array(0));
  return result.value.num_pending;
}

/** Time of the server that leads a stream, Unix ms. @returns undefined when the server does not tell */
export async function serverTimeMs(link: Link, stream: string): Promise<number | undefined> {
  const ts = (await findStream(link, stream))?.ts;
  const ms = ts === undefined ? Number.NaN : Date.parse(ts);
  return Number.isNaN(ms) ? undefined : ms;
}
