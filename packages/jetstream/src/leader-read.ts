import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { API_CODE } from "./api-codes.ts";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";
import { streamMissing } from "./stream-info.ts";

/** A message as the leader of its stream holds it. `storedAtMs` is broker time, Unix ms. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
  /** Value of a header, exact spelling. */
  header(name: string): string | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to repeat an unanswered read, ms. Default 10 s. */
  readonly retryForMs?: number | undefined;
}

const GetAnswer = z.object({
  message: z.object({
    subject: z.string(),
    seq: z.number(),
    data: z.string().default(""),
    hdrs: z.string().optional(),
    time: z.string(),
  }),
});

const nothing = new Uint8Array(0);

/**
 * Newest message of a subject, from the stream's leader. Never a direct get: any replica answers those, and on a replicated stream it may
 * be behind an acknowledged write.
 *
 * @returns undefined when the subject holds no message
 * @throws RuntimeFault HF-4006 when the stream does not exist, HF-4008 when nobody answered in time, HF-4007 when it is not allowed
 */
export function readLast(
  link: Link,
  stream: string,
  subject: string,
  options: ReadOptions = {},
): Promise<StoredMessage | undefined> {
  return getMessage(link, stream, { last_by_subj: subject }, options);
}

/** Message of a sequence. @returns undefined when it is gone or was never there @throws as readLast */
export function readSeq(
  link: Link,
  stream: string,
  seq: number,
  options: ReadOptions = {},
): Promise<StoredMessage | undefined> {
  return getMessage(link, stream, { seq }, options);
}

/** First message at or after `seq` whose subject matches `filter`. @returns undefined when there is none @throws as readLast */
export function readNext(
  link: Link,
  stream: string,
  filter: string,
  seq: number,
  options: ReadOptions = {},
): Promise<StoredMessage | undefined> {
  return getMessage(link, stream, { seq: Math.max(1, seq), next_by_subj: filter }, options);
}

async function getMessage(
  link: Link,
  stream: string,
  body: Readonly<Record<string, string | number>>,
  options: ReadOptions,
): Promise<StoredMessage | undefined> {
  const result = await apiRequest(link, {
    api: `STREAM.MSG.GET.${stream}`,
    body,
    answer: GetAnswer,
    signal: options.signal,
    retryForMs: options.retryForMs,
  });
  if (result.kind === "ok") return toStoredMessage(result.value.message);
  if (result.code === API_CODE.messageNotFound) return undefined;
  if (result.code === API_CODE.streamNotFound) throw streamMissing(stream);
  throw new RuntimeFault(
    "HF-4003",
    `Stream ${stream}: a read was refused (${result.reason}). Look at the server's log.`,
    {
      facts: { stream, apiCode: result.code },
    },
  );
}

function toStoredMessage(message: z.infer<typeof GetAnswer>["message"]): StoredMessage {
  return {
    subject: message.subject,
    seq: message.seq,
    bytes: message.data === "" ? nothing : Buffer.from(message.data, "base64"),
    storedAtMs: Date.parse(message.time),
    header: (name) => (message.hdrs === undefined ? undefined : findHeader(message.hdrs, name)),
  };
}

function findHeader(base64: string, name: string): string | undefined {
  for (const line of Buffer.from(base64, "base64").toString("utf8").split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0 && line.slice(0, colon) === name) return line.slice(colon + 1).trim();
  }
  return undefined;
}
