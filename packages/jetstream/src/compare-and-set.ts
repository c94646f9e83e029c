// compareAndSet: the one way in which this project replaces a stored value.
//
// Owns: the attempts of one write. Does not own: the caller's copy of the value, which must be dropped on any outcome but `committed`.
//
//   C1  an ambiguous attempt is repeated with the same bytes and the same expectation, never resolved by a read alone:
//       bytes delayed in the network may be applied after the read, while a repeated attempt fences them
//   C2  a conflict is a question: only the token of this attempt in the stored value says whether an earlier try was ours
//   C3  decisions read the leader, never a direct get
//   C4  no Msg-Id: which of Msg-Id and expectation the server checks first differs by version and by number of replicas

import { RuntimeFault } from "@holdfast/protocol";
import { API_CODE, isConflict } from "./api-codes.ts";
import { EXPECTED_SEQ_HEADER, headerBlock } from "./header-block.ts";
import { readLast, type StoredMessage } from "./leader-read.ts";
import type { Link } from "./link.ts";
import { backoffMs, pause } from "./pause.ts";
import { readPublishReply, type PublishAttempt } from "./publish-reply.ts";
import type { RawReply } from "./request-channel.ts";

/**
 * `stale`: somebody else's value is stored and this one certainly never was; `currentSeq` undefined when the subject is empty.
 * `unknown`: it may have been stored, also now or later. After giving up, or when an ambiguous attempt was followed by somebody else's value:
 * ours may have been there in between, and its effects may have been taken over.
 */
export type CompareAndSetOutcome =
  | { readonly kind: "committed"; readonly seq: number }
  | { readonly kind: "stale"; readonly currentSeq: number | undefined }
  | { readonly kind: "unknown"; readonly reason: string };

export interface CompareAndSetRequest {
  readonly stream: string;
  readonly subject: string;
  readonly bytes: Uint8Array;
  /** Sequence of the value to be replaced; 0 when the subject must be empty. */
  readonly expectedSeq: number;
  /** Random, fresh for every call, inside `bytes`. */
  readonly token: string;
  /** Token of stored bytes; undefined when they cannot be read. */
  readonly tokenOf: (bytes: Uint8Array) => string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long to repeat, ms. Default 20 s: a leader election of a replicated stream takes 4 to 8 s. */
  readonly retryForMs?: number | undefined;
}

const ATTEMPT_TIMEOUT_MS = 2000;
const RETRY_FOR_MS = 20_000;

/**
 * Stores `bytes` if the newest sequence of the subject is `expectedSeq`.
 *
 * @throws RuntimeFault HF-2004 when the value is larger than the stream or the server takes, HF-4007 when the user may not write
 */
export async function compareAndSet(link: Link, request: CompareAndSetRequest): Promise<CompareAndSetOutcome> {
  const headers = headerBlock({ [EXPECTED_SEQ_HEADER]: `${request.expectedSeq}`, ...request.headers });
  const ask = (): Promise<RawReply> =>
    link.requests.request(request.subject, request.bytes, headers, ATTEMPT_TIMEOUT_MS, request.signal);

  const first = readPublishReply(await ask());
  if (first.kind === "stored") return { kind: "committed", seq: first.seq };
  return settle(link, request, async () => readPublishReply(await ask()), first);
}

async function settle(
  link: Link,
  request: CompareAndSetRequest,
  send: () => Promise<PublishAttempt>,
  first: PublishAttempt,
): Promise<CompareAndSetOutcome> {
  const endMs = performance.now() + (request.retryForMs ?? RETRY_FOR_MS);
  let last = first;
  let wasAmbiguous = false;
  for (let attempt = 0; ; attempt++) {
    wasAmbiguous ||= last.kind === "ambiguous";
    const outcome = await judge(link, request, last, endMs);
    if (outcome.kind === "stale" && wasAmbiguous) {
      return { kind: "unknown", reason: "an earlier attempt may have been stored and replaced since" };
    }
    if (outcome.kind !== "again") return outcome;
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || request.signal?.aborted === true || link.closed.aborted) {
      return { kind: "unknown", reason: outcome.reason };
    }
    if (await link.whenConnected(leftMs, request.signal)) {
      await pause(Math.min(backoffMs(attempt), leftMs), request.signal);
    }
    last = await send(); // C1
  }
}

type Judgement = CompareAndSetOutcome | { readonly kind: "again"; readonly reason: string };

async function judge(
  link: Link,
  request: CompareAndSetRequest,
  attempt: PublishAttempt,
  endMs: number,
): Promise<Judgement> {
  switch (attempt.kind) {
    case "stored":
      return { kind: "committed", seq: attempt.seq };
    case "rejected":
      if (isConflict(attempt.code)) return judgeConflict(link, request, attempt.reason, endMs);
      if (attempt.code === API_CODE.messageTooLarge) throw tooLarge(request, "the stream's max_msg_size");
      return { kind: "again", reason: attempt.reason };
    case "notStored":
    case "ambiguous":
      return { kind: "again", reason: attempt.reason };
    case "tooLarge":
      throw tooLarge(request, `${attempt.maxBytes} bytes`);
    case "denied":
      throw new RuntimeFault("HF-4007", `Write to ${request.subject}: ${attempt.reason}. Grant it to this user.`, {
        facts: { subject: request.subject },
      });
  }
}

async function judgeConflict(
  link: Link,
  request: CompareAndSetRequest,
  reason: string,
  endMs: number,
): Promise<Judgement> {
  const current = await readCurrent(link, request, endMs);
  if (current.kind === "unread") return { kind: "again", reason: current.reason };
  const { message } = current;
  if (message !== undefined && safeToken(request, message.bytes) === request.token) {
    return { kind: "committed", seq: message.seq }; // C2: an earlier attempt of this call
  }
  // The refusal and the read contradict each other: another proposal was in flight, or the read came from a leader about to be replaced.
  // Asking again is safe, since only this expectation can be met.
  if ((message?.seq ?? 0) === request.expectedSeq) return { kind: "again", reason };
  return { kind: "stale", currentSeq: message?.seq };
}

type CurrentValue =
  | { readonly kind: "read"; readonly message: StoredMessage | undefined }
  | { readonly kind: "unread"; readonly reason: string };

async function readCurrent(link: Link, request: CompareAndSetRequest, endMs: number): Promise<CurrentValue> {
  try {
    const message = await readLast(link, request.stream, request.subject, {
      signal: request.signal,
      retryForMs: Math.max(0, endMs - performance.now()),
    });
    return { kind: "read", message };
  } catch (error) {
    if (request.signal?.aborted === true) return { kind: "unread", reason: "given up" };
    if (error instanceof RuntimeFault && error.code === "HF-4008") return { kind: "unread", reason: error.message };
    throw error;
  }
}

function safeToken(request: CompareAndSetRequest, bytes: Uint8Array): string | undefined {
  try {
    return request.tokenOf(bytes);
  } catch {
    // Bytes that cannot be read are not ours: this call wrote readable ones.
    return undefined;
  }
}

function tooLarge(request: CompareAndSetRequest, limit: string): RuntimeFault {
  return new RuntimeFault(
    "HF-2004",
    `Write to ${request.subject}: ${request.bytes.length} bytes, allowed are ${limit}. Keep bulky content in blobs.`,
    { facts: { subject: request.subject, bytes: request.bytes.length } },
  );
}
