import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { API_CODE } from "./api-codes.ts";
import { backoffMs, pause, throwIfAborted } from "./pause.ts";
import type { Link } from "./link.ts";
import type { RawReply } from "./request-channel.ts";

/** Expected refusals come back as `refused` with the server's code; everything else that is not an answer was retried. */
export type ApiResult<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "refused"; readonly code: number; readonly reason: string };

export interface ApiRequest<T> {
  /** Subject below `$JS.API.`. */
  readonly api: string;
  readonly body?: unknown;
  readonly answer: z.ZodType<T>;
  /** How long to repeat a request that got no answer. Only for requests that may be repeated. Default 10 s. */
  readonly retryForMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const ATTEMPT_TIMEOUT_MS = 2000;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const Refusal = z.object({
  error: z.object({ code: z.number(), err_code: z.number().default(0), description: z.string().default("") }),
});

/**
 * One request of the JetStream API, repeated until it is answered. The leader of the stream answers, so what it says is current.
 *
 * @throws the reason of `signal` when it aborts; RuntimeFault HF-4008 when no answer came in `retryForMs`, HF-4007 when the user may not
 *   ask, HF-4001 when the answer cannot be read
 */
export async function apiRequest<T>(link: Link, request: ApiRequest<T>): Promise<ApiResult<T>> {
  const subject = `$JS.API.${request.api}`;
  const payload = request.body === undefined ? new Uint8Array(0) : encoder.encode(JSON.stringify(request.body));
  const endMs = performance.now() + (request.retryForMs ?? 10_000);
  for (let attempt = 0; ; attempt++) {
    const reply = await link.requests.request(subject, payload, undefined, ATTEMPT_TIMEOUT_MS, request.signal);
    const result = readReply(subject, reply, request.answer);
    if (result.kind !== "again") return result;
    throwIfAborted(request.signal);
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || link.closed.aborted) {
      throw new RuntimeFault(
        "HF-4008",
        `JetStream request ${request.api}: expected an answer, found none (${result.reason}). Check that the server is up and its stream has a leader, then try again.`,
        { facts: { api: request.api } },
      );
    }
    if (await link.whenConnected(leftMs, request.signal)) {
      await pause(Math.min(backoffMs(attempt), leftMs), request.signal);
    }
  }
}

type ReadResult<T> = ApiResult<T> | { readonly kind: "again"; readonly reason: string };

function readReply<T>(subject: string, reply: RawReply, schema: z.ZodType<T>): ReadResult<T> {
  switch (reply.kind) {
    case "answer":
      return readAnswer(subject, reply.bytes, schema);
    case "noResponders":
      return { kind: "again", reason: "JetStream is not available" };
    case "notSent":
    case "lost":
      return { kind: "again", reason: reply.reason };
    case "tooLarge":
      return { kind: "refused", code: API_CODE.messageTooLarge, reason: `request is over ${reply.maxBytes} bytes` };
    case "denied":
      throw new RuntimeFault("HF-4007", `JetStream request on ${subject}: ${reply.reason}. Grant it to this user.`, {
        facts: { subject },
      });
  }
}

function readAnswer<T>(subject: string, bytes: Uint8Array, schema: z.ZodType<T>): ReadResult<T> {
  const json = parseJson(subject, bytes);
  const refusal = Refusal.safeParse(json);
  if (refusal.success) {
    const { err_code: code, description } = refusal.data.error;
    // Said by a cluster without a leader for its metadata: the same request will succeed later.
    if (code === API_CODE.systemUnavailable) return { kind: "again", reason: description };
    return { kind: "refused", code, reason: description };
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return { kind: "ok", value: parsed.data };
  throw unreadable(subject, parsed.error);
}

function parseJson(subject: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch (error) {
    throw unreadable(subject, error);
  }
}

function unreadable(subject: string, cause: unknown): RuntimeFault {
  return new RuntimeFault(
    "HF-4001",
    `JetStream request on ${subject}: the answer is not of the known shape. Check that a nats-server answers there.`,
    { cause, facts: { subject } },
  );
}
