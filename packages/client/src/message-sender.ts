import type { Codec } from "@holdfast/codec";
import { idempotencyStore, publishStored, publishUnacked, type IdempotencyScope, type Link } from "@holdfast/jetstream";
import {
  hash128,
  MessageOutcome,
  parseActorKey,
  principalToken,
  RuntimeFault,
  sha256Hex,
  type Envelope,
  type OnBehalf,
  type Principal,
  type RecordHeader,
  type Subjects,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import { BusyGate, type ClientWindow } from "./busy-gate.ts";
import { readPanic } from "./panic-desk.ts";
import { ReplyInbox } from "./reply-inbox.ts";

export interface SendOptions {
  /** Same key, same target, same principal: the message is taken once, for at least 24 h. Without it only this call's own retries are safe. */
  readonly idempotencyKey?: string;
  /** How long to wait for the actor's answer, ms; default 10 s. */
  readonly timeoutMs?: number;
}

/**
 * `accepted`: stored, the actor has not answered in time; with `stopped`: nor will it before the stop of the fleet is lifted, and then it gets
 * the message. Everything else is what the actor said.
 */
export type SendResult = MessageOutcome | { readonly kind: "accepted"; readonly stopped?: string };

export interface MessageSenderOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly subjects: Subjects;
  readonly principal: Principal;
  readonly randomHex: (bytes: number) => string;
  readonly window: ClientWindow;
  /** Clear header of an actor's record. */
  readonly readHeader: (key: string) => Promise<RecordHeader | undefined>;
}

/** The first publish asks for no acknowledgement: within this time the actor's answer replaces it. ms */
const UNACKED_WAIT_MS = 1000;

/**
 * Messages from outside to actors.
 *
 * Owns: ids, retries, the wait for the outcome. Does not own: the connection.
 *   S1 accepted means stored (I8): a result is returned only after the actor's commit, or after the stream's acknowledgement
 *   S2 a retry is the same message under the same id (F2)
 *   S4 while too much waits nothing is sent: the sender is told when to come back
 *   S3 one idempotency key with two contents is refused, nothing is sent
 */
export class MessageSender {
  readonly #options: MessageSenderOptions;
  readonly #replies: ReplyInbox;
  readonly #gate: BusyGate;

  constructor(options: MessageSenderOptions) {
    this.#options = options;
    this.#replies = new ReplyInbox(options.link, options.codec);
    this.#gate = new BusyGate({
      link: options.link,
      fleetBucket: options.subjects.fleetBucket,
      window: options.window,
    });
  }

  /** @throws RuntimeFault HF-3006 (S3), HF-3020 when too much waits: nothing was sent, `retryAfterMs` of its facts says when to come back (S4), HF-3021 while the fleet is stopped: nothing was sent, HF-4004 when the stream refuses, HF-4007 without permission, HF-4008 when nobody knows whether it was stored */
  async send(key: string, body: EnvelopeBody, options: SendOptions = {}): Promise<SendResult> {
    const leave = this.#gate.enter(parseActorKey(key).partition); // S4
    try {
      return await this.#send(key, body, options);
    } finally {
      leave();
    }
  }

  async #send(key: string, body: EnvelopeBody, options: SendOptions): Promise<SendResult> {
    const { principal, subjects, randomHex } = this.#options;
    const scope: IdempotencyScope = {
      target: key,
      principal: principalToken(principal),
      idempotencyKey: options.idempotencyKey ?? `once-${randomHex(12)}`,
    };
    // Without a key nobody can use it again: any id that is nobody else's will do.
    const id =
      options.idempotencyKey === undefined
        ? randomHex(16)
        : hash128(`${scope.target}\0${scope.principal}\0${scope.idempotencyKey}`);
    const known =
      options.idempotencyKey === undefined
        ? undefined
        : await this.#claim(scope, id, body, options.timeoutMs ?? 10_000);
    if (known !== undefined) return known;
    const bytes = this.#options.codec.encodeEnvelope({ ...body, v: 1, id, replyTo: this.#replies.subject });
    const result = await this.#exchange(key, id, bytes, options.timeoutMs ?? 10_000);
    if (options.idempotencyKey !== undefined && result.kind !== "accepted") {
      const store = idempotencyStore(this.#options.link, subjects.idempotencyBucket);
      await store.complete(scope, result, randomHex(8));
    }
    return result;
  }

  close(): void {
    this.#replies.close();
    this.#gate.close();
  }

  /** @returns the outcome that the first use of the key had, when there is one */
  async #claim(
    scope: IdempotencyScope,
    id: string,
    body: EnvelopeBody,
    retryForMs: number,
  ): Promise<SendResult | undefined> {
    const { link, subjects, codec, randomHex } = this.#options;
    const payloadHash = sha256Hex(codec.encodeEnvelope({ ...body, v: 1, id }));
    const claim = await idempotencyStore(link, subjects.idempotencyBucket).claim(scope, payloadHash, randomHex(8), {
      retryForMs,
    });
    switch (claim.kind) {
      case "fresh":
        return undefined;
      case "same":
        return MessageOutcome.safeParse(claim.outcome).data;
      case "conflict":
        throw new RuntimeFault(
          "HF-3006",
          `Idempotency key "${scope.idempotencyKey}" for ${scope.target}: it was used with other content. Use a new key for a new message.`,
          { facts: { target: scope.target } },
        );
      case "unknown":
        throw new RuntimeFault(
          "HF-4008",
          `Message to ${scope.target}: its key could not be claimed (${claim.reason}). Send it again under the same key.`,
        );
    }
  }

  /** Looks at the record until its actor has considered a sequence; ends with `signal`. A lost answer then costs no time-out. */
  async #untilConsidered(key: string, seq: number, signal: AbortSignal): Promise<void> {
    for (let lookMs = LOOK_MS; !signal.aborted; lookMs = Math.min(MAX_LOOK_MS, lookMs * 2)) {
      // A record that cannot be read says nothing of the message, which is stored (S1).
      const header = await this.#options.readHeader(key).catch(() => undefined);
      if (header !== undefined && header.inboxSeq >= seq) return;
      await delay(lookMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #exchange(key: string, id: string, bytes: Uint8Array, timeoutMs: number): Promise<SendResult> {
    const { link, subjects, principal } = this.#options;
    const subject = subjects.outside(principal, key);
    const startedAtMs = performance.now();
    if (publishUnacked(link, subject, bytes, id)) {
      const early = await this.#replies.wait(id, Math.min(UNACKED_WAIT_MS, timeoutMs)).outcome;
      if (early !== undefined) return early;
    }
    const wait = this.#replies.wait(id, timeoutMs + 60_000);
    const stored = await publishStored(link, { subject, bytes, messageId: id, retryForMs: Math.max(1000, timeoutMs) }); // S2
    if (stored.kind !== "accepted") {
      wait.extend(0);
      const told = await wait.outcome;
      if (told !== undefined) return told;
      const code = stored.kind === "refused" ? stored.code : "HF-4008";
      throw new RuntimeFault(
        code,
        `Message to ${subject}: ${stored.kind} (${stored.reason}). Send it again under the same idempotency key.`,
        stored.kind === "refused" && stored.retryable ? { facts: { retryAfterMs: REFUSED_RETRY_MS } } : {},
      );
    }
    const panic = await readPanic(link, subjects).catch(() => undefined); // who is not answered for a second has reason to ask
    if (panic !== undefined) this.#gate.knows(panic);
    if (panic?.isRaised === true) {
      wait.extend(0);
      return (await wait.outcome) ?? { kind: "accepted", stopped: panic.reason };
    }
    wait.extend(Math.max(0, timeoutMs - (performance.now() - startedAtMs)));
    const considered = new AbortController();
    const outcome = wait.outcome.finally(() => considered.abort());
    await this.#untilConsidered(key, stored.seq, considered.signal);
    wait.extend(considered.signal.aborted ? 0 : LATE_ANSWER_MS);
    return (await outcome) ?? { kind: "accepted" };
  }
}

/** A stream that is full or has no leader stays so for a while. ms */
const REFUSED_RETRY_MS = 5000;
/** Once the record says that the message was considered, its answer is on the way or lost. ms */
const LATE_ANSWER_MS = 200;
const LOOK_MS = 250;
/** A thousand senders that look four times a second would be a load of their own. */
const MAX_LOOK_MS = 2000;

/** What a caller decides of an envelope. */
export type EnvelopeBody =
  | { readonly kind: "start"; readonly input?: unknown; readonly onBehalf?: OnBehalf }
  | {
      readonly kind: "send";
      readonly event: Extract<Envelope, { kind: "send" }>["event"];
      readonly toGenesis?: string;
    };
