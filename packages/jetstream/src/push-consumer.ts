// PushConsumer: one server-side consumer that pushes messages of a stream to this connection, until something is amiss.
//
// Owns: its delivery subscription, its consumer on the server.
// Does not own: what was read before, nor replacing itself (OrderedReader).
//
//   P1  messages are handed over in the consumer's order without a gap; at the first doubt `onBroken` is called once and nothing after it
//   P2  doubt is: a gap in the consumer's own numbers, a heartbeat that names a higher number than was received, no sign of life for
//       three heartbeats, a status other than 100, a disconnect
//   P3  nothing thrown by `onMessage` reaches the client library, whose read loop would end without closing the connection

import { createInbox, nanos, type Msg, type Subscription } from "@nats-io/transport-node";
import { z } from "zod";
import { apiRequest, type ApiResult } from "./api-request.ts";
import type { Link } from "./link.ts";
import { parseDelivery, toStreamMessage, type StreamMessage } from "./stream-message.ts";

export interface PushConsumerOptions {
  readonly stream: string;
  readonly filters: readonly string[];
  readonly fromSeq: number;
  readonly headersOnly: boolean;
  readonly heartbeatMs: number;
  onMessage(message: StreamMessage): void;
  /** @param error what `onMessage` threw, when that was the reason */
  onBroken(reason: string, error?: unknown): void;
}

const ConsumerInfo = z.object({ name: z.string() });

/** Enough for the server to notice an abandoned consumer soon, but not within a short stall of the client. */
const INACTIVE_MS = 30_000;
const nothing = new Uint8Array(0);

export class PushConsumer {
  readonly #link: Link;
  readonly #options: PushConsumerOptions;
  readonly #name: string;
  readonly #deliverSubject: string;
  readonly #subscription: Subscription;
  readonly #stopDisconnectNotice: () => void;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #lastSignAtMs = performance.now();
  #consumerSeq = 0;
  #ended = false;

  constructor(link: Link, options: PushConsumerOptions) {
    this.#link = link;
    this.#options = options;
    this.#deliverSubject = createInbox(link.inboxPrefix);
    this.#name = `hf_${this.#deliverSubject.slice(this.#deliverSubject.lastIndexOf(".") + 1)}`;
    // Subscribed before the consumer exists: on one connection the server sees both in this order.
    this.#subscription = link.nc.subscribe(this.#deliverSubject, {
      callback: (error, message) => {
        if (error === null) this.#onDelivery(message);
        else this.#break(`subscription refused: ${error.message}`);
      },
    });
    this.#stopDisconnectNotice = link.onDisconnect(() => this.#break("disconnected"));
  }

  /** Creates the consumer. Messages may arrive before it returns. @throws as apiRequest */
  async create(signal?: AbortSignal): Promise<ApiResult<unknown>> {
    const { stream, filters, fromSeq, headersOnly, heartbeatMs } = this.#options;
    const single = filters.length === 1 ? filters[0] : undefined;
    const config = {
      name: this.#name,
      deliver_subject: this.#deliverSubject,
      ack_policy: "none",
      max_deliver: 1,
      replay_policy: "instant",
      flow_control: true,
      idle_heartbeat: nanos(heartbeatMs),
      inactive_threshold: nanos(INACTIVE_MS),
      mem_storage: true,
      num_replicas: 1,
      headers_only: headersOnly,
      ...(fromSeq <= 1 ? { deliver_policy: "all" } : { deliver_policy: "by_start_sequence", opt_start_seq: fromSeq }),
      ...(single === undefined ? { filter_subjects: filters } : { filter_subject: single }),
    };
    // A single filter is part of the API subject, so that permissions can be granted by it.
    const api = `CONSUMER.CREATE.${stream}.${this.#name}${single === undefined ? "" : `.${single}`}`;
    const result = await apiRequest(this.#link, {
      api,
      body: { stream_name: stream, config, action: "create" },
      answer: ConsumerInfo,
      retryForMs: 0,
      signal,
    });
    if (result.kind === "ok" && !this.#ended) this.#startWatchdog();
    return result;
  }

  /** Ends delivery at once; the consumer on the server goes with it. */
  stop(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#watchdog);
    this.#stopDisconnectNotice();
    if (!this.#link.nc.isClosed()) this.#subscription.unsubscribe();
    // Not awaited and its answer not needed: an abandoned consumer is removed by the server after INACTIVE_MS.
    this.#link.publish(`$JS.API.CONSUMER.DELETE.${this.#options.stream}.${this.#name}`, nothing);
  }

  #break(reason: string, error?: unknown): void {
    if (this.#ended) return;
    this.stop();
    this.#options.onBroken(reason, error);
  }

  #startWatchdog(): void {
    const { heartbeatMs } = this.#options;
    this.#lastSignAtMs = performance.now();
    this.#watchdog = setInterval(() => {
      if (performance.now() - this.#lastSignAtMs > 3 * heartbeatMs) this.#break("no heartbeat");
    }, heartbeatMs);
  }

  #onDelivery(message: Msg): void {
    if (this.#ended) return;
    this.#lastSignAtMs = performance.now();
    const delivery = parseDelivery(message.reply ?? "");
    if (delivery === undefined) {
      this.#onStatusMessage(message);
      return;
    }
    if (delivery.consumerSeq !== this.#consumerSeq + 1) {
      this.#break(`gap: expected delivery ${this.#consumerSeq + 1}, got ${delivery.consumerSeq}`);
      return;
    }
    this.#consumerSeq = delivery.consumerSeq;
    try {
      this.#options.onMessage(toStreamMessage(message, delivery));
    } catch (error) {
      this.#break("the receiver threw", error); // P3
    }
  }

  #onStatusMessage(message: Msg): void {
    const { headers } = message;
    if (headers?.code !== 100) {
      this.#break(`status ${headers?.code ?? 0} ${headers?.description ?? ""}`);
      return;
    }
    // Flow control is answered after everything before it was handed over, which is what the server wants to know.
    message.respond();
    const stalled = headers.get("Nats-Consumer-Stalled");
    if (stalled !== "") this.#link.publish(stalled, nothing);
    const sent = headers.get("Nats-Last-Consumer");
    // The client's own ordered consumer ignores this number: a message lost in a broken socket stays unnoticed until the next one.
    if (sent !== "" && Number(sent) !== this.#consumerSeq) {
      this.#break(`lost tail: the server sent ${sent} messages, ${this.#consumerSeq} arrived`);
    }
  }
}
