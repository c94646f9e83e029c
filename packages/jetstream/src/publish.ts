import type { ErrorCode } from "@holdfast/protocol";
import { API_CODE } from "./api-codes.ts";
import { headerBlock, MESSAGE_ID_HEADER } from "./header-block.ts";
import type { Link } from "./link.ts";
import { backoffMs, pause } from "./pause.ts";
import { readPublishReply, type PublishAttempt } from "./publish-reply.ts";
import type { RawReply } from "./request-channel.ts";

/**
 * `accepted`: stored at `seq`, by this call or by an earlier one with the same id (`duplicate`). A duplicate says nothing about content: ids
 * are compared per stream, not per subject.
 * `refused`: certainly not stored. `unknown`: may be stored; the same id may be sent again.
 */
export type StorePublishOutcome =
  | { readonly kind: "accepted"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly reason: string; readonly retryable: boolean }
  | { readonly kind: "unknown"; readonly reason: string };

export interface PublishRequest {
  readonly subject: string;
  readonly bytes: Uint8Array;
  /** Deduplicates within the stream's window; without it the message is stored by every attempt, so there is only one. */
  readonly messageId?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long to repeat an ambiguous attempt, ms. Default 10 s. */
  readonly retryForMs?: number | undefined;
}

const ATTEMPT_TIMEOUT_MS = 2000;
const RETRY_FOR_MS = 10_000;

/** Stores one message in whichever stream takes the subject. An ambiguous attempt is repeated under the same id. */
export async function publishStored(link: Link, request: PublishRequest): Promise<StorePublishOutcome> {
  const idHeader = request.messageId === undefined ? {} : { [MESSAGE_ID_HEADER]: request.messageId };
  const headers = headerBlock({ ...request.headers, ...idHeader });
  const ask = (): Promise<RawReply> =>
    link.requests.request(request.subject, request.bytes, headers, ATTEMPT_TIMEOUT_MS, request.signal);

  let last = readPublishReply(await ask());
  if (last.kind !== "ambiguous") return definite(request, last);
  const endMs = performance.now() + (request.retryForMs ?? RETRY_FOR_MS);
  const { reason } = last;
  for (let attempt = 0; request.messageId !== undefined; attempt++) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || request.signal?.aborted === true || link.closed.aborted) break;
    if (await link.whenConnected(leftMs, request.signal)) {
      await pause(Math.min(backoffMs(attempt), leftMs), request.signal);
    }
    last = readPublishReply(await ask());
    if (last.kind === "stored") return definite(request, last);
  }
  // Even when the last attempt was refused: an earlier one may have been stored.
  return { kind: "unknown", reason };
}

function definite(
  request: PublishRequest,
  attempt: Exclude<PublishAttempt, { readonly kind: "ambiguous" }>,
): StorePublishOutcome {
  switch (attempt.kind) {
    case "stored":
      return { kind: "accepted", seq: attempt.seq, duplicate: attempt.duplicate };
    case "notStored":
      return { kind: "refused", code: "HF-4004", reason: attempt.reason, retryable: true };
    case "rejected":
      return {
        kind: "refused",
        code: "HF-4004",
        reason: `${attempt.reason} (${attempt.code})`,
        retryable: attempt.code !== API_CODE.messageTooLarge,
      };
    case "denied":
      return { kind: "refused", code: "HF-4007", reason: attempt.reason, retryable: false };
    case "tooLarge":
      return {
        kind: "refused",
        code: "HF-4004",
        reason: `${request.bytes.length} bytes, the server takes ${attempt.maxBytes}`,
        retryable: false,
      };
  }
}
