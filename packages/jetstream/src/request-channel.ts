// RequestChannel: requests and their answers over one reply subscription.
//
// Owns: the reply subscription, the table of open requests, their time limits.
// Does not own: the connection, retries, what an answer means.
//
//   R1  every request ends exactly once: answer, `notSent`, or `lost`; its promise never rejects
//   R2  `notSent` is said only when nothing was handed to the socket; anything else without an answer is `lost`, that is ambiguous
//   R3  an answer never comes in the same turn of the event loop: a caller that repeats at once would keep the socket from ever being read
//   R4  a disconnect ends every open request at once: the client never re-sends, so waiting for the time limit would only add delay
//
// Why not the client's own `request`: per call it makes five promises and a timer, and after a disconnect it waits for the time limit.
// Measured with 256 compare-and-sets in flight: 24 µs of CPU each against 10 µs here.

import { createInbox, type Msg, type MsgHdrsImpl, type NatsConnection } from "@nats-io/transport-node";

/** How a request ended. `noResponders`: nobody serves the subject (no stream, or no leader now); nothing was stored by this attempt. */
export type RawReply =
  | { readonly kind: "answer"; readonly bytes: Uint8Array }
  | { readonly kind: "noResponders" }
  | { readonly kind: "notSent"; readonly reason: string }
  | { readonly kind: "denied"; readonly reason: string }
  | { readonly kind: "tooLarge"; readonly maxBytes: number }
  | { readonly kind: "lost"; readonly reason: string };

interface OpenRequest {
  readonly subject: string;
  readonly dueAtMs: number;
  readonly settle: (reply: RawReply) => void;
}

const SWEEP_MS = 50;

export class RequestChannel {
  readonly #nc: NatsConnection;
  readonly #prefix: string;
  readonly #open = new Map<string, OpenRequest>();
  #counter = 0;
  #sweep: ReturnType<typeof setInterval> | undefined;
  #connected = true;
  /** Set once the server refused the reply subscription: no request can be answered any more. */
  #replyDenied: string | undefined;

  constructor(nc: NatsConnection, inboxPrefix: string) {
    this.#nc = nc;
    this.#prefix = `${createInbox(inboxPrefix)}.`;
    nc.subscribe(`${this.#prefix}*`, { callback: (error, message) => this.#onReply(error, message) });
  }

  /** Number of requests without an answer yet. */
  get openRequests(): number {
    return this.#open.size;
  }

  /**
   * @param timeoutMs time limit; reached within 50 ms
   * @param signal ends the wait, as `lost`
   */
  request(
    subject: string,
    payload: Uint8Array,
    headers: MsgHdrsImpl | undefined,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<RawReply> {
    const refusal = this.#whyNotSent(payload, headers);
    if (refusal !== undefined) return later(refusal);
    return new Promise((resolve) => {
      const token = (this.#counter++).toString(36);
      const options = { reply: this.#prefix + token };
      try {
        this.#nc.publish(subject, payload, headers === undefined ? options : { ...options, headers });
      } catch (error) {
        // Thrown before anything reaches the outbound buffer: closed or draining connection, malformed subject.
        setImmediate(resolve, { kind: "notSent", reason: error instanceof Error ? error.message : "publish failed" });
        return;
      }
      const settle = signal === undefined ? resolve : this.#endWith(signal, token, resolve);
      this.#open.set(token, { subject, dueAtMs: performance.now() + timeoutMs, settle });
      this.#sweep ??= setInterval(() => this.#endOverdue(), SWEEP_MS);
    });
  }

  /** Follows the connection (R4). */
  connectionChanged(connected: boolean): void {
    this.#connected = connected;
    if (!connected) this.#endAll({ kind: "lost", reason: "disconnected" });
  }

  /** The server refused a publish; it names the subject, not the request. */
  publishDenied(subject: string): void {
    for (const [token, request] of this.#open) {
      if (request.subject !== subject) continue;
      this.#open.delete(token);
      request.settle({ kind: "denied", reason: `publish to ${subject} is not allowed` });
    }
  }

  close(): void {
    this.connectionChanged(false);
  }

  #whyNotSent(payload: Uint8Array, headers: MsgHdrsImpl | undefined): RawReply | undefined {
    if (this.#replyDenied !== undefined) return { kind: "denied", reason: this.#replyDenied };
    if (!this.#connected) return { kind: "notSent", reason: "not connected" };
    const limit = this.#nc.info?.max_payload;
    const size = payload.length + (headers === undefined ? 0 : headers.encode().length);
    return limit !== undefined && size > limit ? { kind: "tooLarge", maxBytes: limit } : undefined;
  }

  /** Lets `signal` end the wait for one answer. The request itself cannot be taken back. */
  #endWith(signal: AbortSignal, token: string, settle: (reply: RawReply) => void): (reply: RawReply) => void {
    const onAbort = (): void => {
      this.#open.delete(token);
      settle({ kind: "lost", reason: "given up" });
    };
    if (signal.aborted) queueMicrotask(onAbort);
    else signal.addEventListener("abort", onAbort, { once: true });
    return (reply) => {
      signal.removeEventListener("abort", onAbort);
      settle(reply);
    };
  }

  #onReply(error: Error | null, message: Msg): void {
    if (error !== null) {
      this.#replyDenied = `subscription to ${this.#prefix}* is not allowed`;
      this.#endAll({ kind: "denied", reason: this.#replyDenied });
      return;
    }
    const token = message.subject.slice(this.#prefix.length);
    const request = this.#open.get(token);
    if (request === undefined) return;
    this.#open.delete(token);
    const bytes = message.data;
    const nobody = bytes.length === 0 && message.headers?.code === 503;
    request.settle(nobody ? { kind: "noResponders" } : { kind: "answer", bytes });
  }

  #endOverdue(): void {
    const nowMs = performance.now();
    for (const [token, request] of this.#open) {
      if (request.dueAtMs > nowMs) continue;
      this.#open.delete(token);
      request.settle({ kind: "lost", reason: "no answer in time" });
    }
    if (this.#open.size === 0) this.#stopSweep();
  }

  #endAll(reply: RawReply): void {
    const ended = [...this.#open.values()];
    this.#open.clear();
    this.#stopSweep();
    for (const request of ended) request.settle(reply);
  }

  #stopSweep(): void {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

/** R3. */
const later = (reply: RawReply): Promise<RawReply> => new Promise((resolve) => setImmediate(resolve, reply));
