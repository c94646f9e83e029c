import { parseActorKey, parseInboxSubject, RuntimeFault, type ActorKey } from "@holdfast/protocol";
import type { InboxMessage, InboxPosition, InboxSubscription, MessageLog, PublishOutcome } from "../ports/index.ts";
import type { BrokerState, OpenInbox } from "./broker-state.ts";
import type { Matches, StreamMessage } from "./memory-stream.ts";
import type { NodeLink } from "./node-link.ts";
import { publishMessage } from "./publish-message.ts";
import { StreamReader } from "./stream-reader.ts";
import { untilAborted } from "./until-aborted.ts";

type Lane = "inbox" | "control" | "parked";

/** Reads a stored inbox or parked message; its bytes are a copy. */
export function readInboxMessage(state: BrokerState, message: StreamMessage): InboxMessage | undefined {
  const parkedPrefix = state.subjects.parked("");
  const origin = message.subject.startsWith(parkedPrefix)
    ? { key: message.subject.slice(parkedPrefix.length), lane: "inbox" as const }
    : parseInboxSubject(state.subjects.ns, message.subject);
  if (origin === undefined) return undefined;
  return {
    key: origin.key,
    lane: origin.lane,
    principal: "principal" in origin ? origin.principal : undefined,
    seq: message.seq,
    bytes: new Uint8Array(message.bytes),
    storedAtMs: message.storedAtMs,
    messageId: message.messageId ?? "",
  };
}

/** MessageLog of one node over the memory broker. A parked message has no principal: its subject has no place for one. */
export class MemoryMessageLog implements MessageLog {
  readonly #state: BrokerState;
  readonly #link: NodeLink;

  constructor(state: BrokerState, link: NodeLink) {
    this.#state = state;
    this.#link = link;
  }

  publish(lane: Lane, key: ActorKey, bytes: Uint8Array, messageId: string): Promise<PublishOutcome> {
    return publishMessage(this.#state, this.#link, {
      operation: "publish",
      stream: this.#state.streamOf(lane === "parked" ? "parked" : "inbox", key),
      subject: this.#state.subjects[lane](key),
      bytes,
      messageId,
    });
  }

  async subscribe(
    partition: string,
    fromSeq: number,
    deliver: (message: InboxMessage) => void,
  ): Promise<InboxSubscription> {
    const stream = this.#state.stream("inbox", partition);
    const matches = this.#ofPartition(partition);
    await this.#link.connected();
    const reader = new StreamReader({
      stream,
      link: this.#link,
      fromSeq,
      matches,
      deliver: (stored) => {
        const message = readInboxMessage(this.#state, stored);
        if (message !== undefined) deliver(message);
      },
    });
    const stopped = new AbortController();
    const failed = new AbortController();
    const end = (): void => {
      reader.stop();
      this.#state.inboxReaders.delete(open);
      stopped.abort(
        new RuntimeFault(
          "HF-3008",
          `Inbox of ${partition}: expected to be read through, was stopped. Subscribe again.`,
        ),
      );
    };
    const open: OpenInbox = {
      node: this.#link.node,
      partition,
      fail: (fault) => {
        end();
        failed.abort(fault);
      },
    };
    this.#state.inboxReaders.add(open);
    return {
      failed: failed.signal,
      readThrough: async (signal) => {
        const either = AbortSignal.any([signal, stopped.signal]);
        const seq = await this.#link.readPatiently(() => stream.lastMatching(matches)?.seq ?? 0, either);
        await untilAborted(either, reader.handedOver(seq));
      },
      stop: () => {
        end();
        return this.#state.turns.next(2); // as a real consumer, it does not end inside the call
      },
    };
  }

  /** `inbox` gives what a subscription delivers for the key, the control lane too. `<partition>.>` stands for all keys of a partition. */
  fetch(lane: "inbox" | "parked", key: ActorKey, fromSeq: number, limit: number): Promise<readonly InboxMessage[]> {
    const partition = key.slice(0, key.indexOf("."));
    const stream = this.#state.stream(lane, partition);
    const isMeant = (candidate: ActorKey): boolean =>
      key === `${partition}.>` ? candidate.startsWith(`${partition}.`) : candidate === key;
    return this.#link.read(`${lane} of ${key}`, () =>
      stream.messages
        .filter((message) => message.seq >= fromSeq)
        .flatMap((message) => readInboxMessage(this.#state, message) ?? [])
        .filter((message) => isMeant(message.key))
        .slice(0, limit),
    );
  }

  position(partition: string): Promise<InboxPosition> {
    const stream = this.#state.stream("inbox", partition);
    return this.#link.read(`position of ${partition}`, () => ({
      generation: this.#state.generation,
      lineage: this.#state.lineage,
      lastSeq: stream.lastSeq,
      ...(stream.fill !== undefined && { fill: stream.fill }),
    }));
  }

  async trim(lane: "inbox" | "parked", target: string, belowSeq: number): Promise<void> {
    const answer = await this.#link.request({
      operation: "trim",
      about: target,
      apply: () => this.#purge(lane, target, belowSeq),
    });
    if (answer.kind === "answered") return;
    throw new RuntimeFault("HF-4008", `Trim of ${lane} ${target}: expected an answer, got none. Trim again.`);
  }

  /** `target` is a partition for the inbox (its whole stream is trimmed), a key for parked messages. */
  #purge(lane: "inbox" | "parked", target: string, belowSeq: number): void {
    if (lane === "inbox") {
      this.#state.stream("inbox", target).purge((message) => message.seq < belowSeq);
      return;
    }
    const subject = this.#state.subjects.parked(target);
    this.#state.streamOf("parked", target).purge((message) => message.seq < belowSeq && message.subject === subject);
  }

  #ofPartition(partition: string): Matches {
    return (message) => {
      const origin = parseInboxSubject(this.#state.subjects.ns, message.subject);
      return origin !== undefined && parseActorKey(origin.key).partition === partition;
    };
  }
}
