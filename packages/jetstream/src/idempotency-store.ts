import { hash128, RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { compareAndSet } from "./compare-and-set.ts";
import { readLast } from "./leader-read.ts";
import type { Link } from "./link.ts";

/** What a key means is a function of all three: the same key of another principal, or for another target, is another key. */
export interface IdempotencyScope {
  /** Address the message is for, with its incarnation when the sender knows it. */
  readonly target: string;
  /** Principal token. */
  readonly principal: string;
  readonly idempotencyKey: string;
}

/** 26 characters; used as key of the bucket and as Msg-Id, so that the two can never disagree about scope. */
export const scopedMessageId = (scope: IdempotencyScope): string =>
  hash128(`${scope.target}\0${scope.principal}\0${scope.idempotencyKey}`);

const Claim = z.object({
  v: z.literal(1),
  payloadHash: z.string(),
  messageId: z.string(),
  outcome: z.unknown().optional(),
  token: z.string(),
});
type Claim = z.infer<typeof Claim>;

/**
 * `fresh`: nobody used the key before. `same`: used before with the same payload; publish again under `messageId` unless `outcome` is
 * there, because the first user may have died in between. `conflict`: used with another payload. `unknown`: ask again.
 */
export type ClaimOutcome =
  | { readonly kind: "fresh"; readonly messageId: string; readonly seq: number }
  | { readonly kind: "same"; readonly messageId: string; readonly seq: number; readonly outcome: unknown }
  | { readonly kind: "conflict"; readonly messageId: string; readonly payloadHash: string }
  | { readonly kind: "unknown"; readonly reason: string };

export interface IdempotencyStore {
  /** Stores the claim before anything is published under it. */
  claim(
    scope: IdempotencyScope,
    payloadHash: string,
    token: string,
    options?: { readonly retryForMs?: number },
  ): Promise<ClaimOutcome>;
  /**
   * Stores the outcome (JSON) for later askers; the first one stays.
   * @returns false when the claim is gone, or already has another outcome
   */
  complete(scope: IdempotencyScope, outcome: unknown, token: string): Promise<boolean>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** @param bucket bucket whose keys expire by themselves */
export function idempotencyStore(link: Link, bucket: string): IdempotencyStore {
  const stream = `KV_${bucket}`;
  const subjectOf = (scope: IdempotencyScope): string => `$KV.${bucket}.${scopedMessageId(scope)}`;
  const write = (
    subject: string,
    claim: Claim,
    expectedSeq: number,
    retryForMs?: number,
  ): ReturnType<typeof compareAndSet> =>
    compareAndSet(link, {
      retryForMs,
      stream,
      subject,
      bytes: encoder.encode(JSON.stringify(claim)),
      expectedSeq,
      token: claim.token,
      tokenOf: (bytes) => parseClaim(subject, bytes).token,
    });

  return {
    async claim(scope, payloadHash, token, { retryForMs } = {}) {
      const subject = subjectOf(scope);
      const messageId = scopedMessageId(scope);
      const outcome = await write(subject, { v: 1, payloadHash, messageId, token }, 0, retryForMs);
      if (outcome.kind === "committed") return { kind: "fresh", messageId, seq: outcome.seq };
      if (outcome.kind === "unknown") return outcome;
      const stored = await readLast(link, stream, subject);
      // It expired between the refusal and the read.
      if (stored === undefined) return { kind: "unknown", reason: "the earlier claim just expired" };
      const found = parseClaim(subject, stored.bytes);
      if (found.payloadHash !== payloadHash) {
        return { kind: "conflict", messageId: found.messageId, payloadHash: found.payloadHash };
      }
      return { kind: "same", messageId: found.messageId, seq: stored.seq, outcome: found.outcome };
    },

    async complete(scope, outcome, token) {
      const subject = subjectOf(scope);
      const stored = await readLast(link, stream, subject);
      if (stored === undefined) return false;
      const found = parseClaim(subject, stored.bytes);
      if (found.outcome !== undefined) return JSON.stringify(found.outcome) === JSON.stringify(outcome);
      const written = await write(subject, { ...found, outcome, token }, stored.seq);
      return written.kind === "committed";
    },
  };
}

function parseClaim(subject: string, bytes: Uint8Array): Claim {
  try {
    return Claim.parse(JSON.parse(decoder.decode(bytes)));
  } catch (error) {
    throw new RuntimeFault(
      "HF-2002",
      `Idempotency entry ${subject}: expected a claim, found something unreadable. Remove the key if nothing is in flight under it.`,
      { cause: error, facts: { subject } },
    );
  }
}
