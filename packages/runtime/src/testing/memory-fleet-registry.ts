import { RuntimeFault } from "@holdfast/protocol";
import type { CommitOutcome, FleetRegistry, FleetValue } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import { compareAndSet } from "./compare-and-set.ts";
import type { MemoryStream, StreamMessage } from "./memory-stream.ts";
import type { NodeLink } from "./node-link.ts";
import { StreamReader } from "./stream-reader.ts";

/** The `token` field of a JSON object. @returns undefined when the bytes are none, or have no such field */
export function jsonToken(bytes: Uint8Array): string | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null || !("token" in value)) return undefined;
    return typeof value.token === "string" ? value.token : undefined;
  } catch {
    return undefined; // not JSON: nobody's token
  }
}

const toFleetValue = (message: StreamMessage): FleetValue => ({
  key: message.subject,
  bytes: new Uint8Array(message.bytes),
  seq: message.seq,
  storedAtMs: message.storedAtMs,
});

/** FleetRegistry of one node over the memory broker. A watcher sees a removed key as a value without bytes. */
export class MemoryFleetRegistry implements FleetRegistry {
  readonly #state: BrokerState;
  readonly #link: NodeLink;
  readonly #bucket: MemoryStream;

  constructor(state: BrokerState, link: NodeLink, bucket = state.fleet) {
    this.#state = state;
    this.#link = link;
    this.#bucket = bucket;
  }

  async put(
    key: string,
    bytes: Uint8Array,
  ): Promise<{ readonly seq: number; readonly storedAtMs: number } | undefined> {
    const copy = new Uint8Array(bytes);
    const answer = await this.#link.request({
      operation: "fleetPut",
      about: key,
      apply: () => this.#bucket.append({ subject: key, bytes: copy }),
    });
    if (answer.kind !== "answered" || answer.value.kind !== "stored") return undefined;
    return { seq: answer.value.seq, storedAtMs: answer.value.storedAtMs };
  }

  compareAndSet(key: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome> {
    return compareAndSet(this.#link, {
      operation: "fleetCas",
      about: key,
      stream: this.#bucket,
      subject: key,
      bytes,
      needsWork: false,
      expectedSeq,
      token,
      tokenOf: jsonToken,
      maxAttempts: this.#state.maxAttempts,
    });
  }

  get(key: string): Promise<FleetValue | undefined> {
    return this.#link.read(key, () => {
      const stored = this.#bucket.last(key);
      return stored === undefined || stored.removed ? undefined : toFleetValue(stored);
    });
  }

  async watch(deliver: (value: FleetValue) => void, keys = ">"): Promise<{ stop(): Promise<void> }> {
    await this.#link.connected();
    const present = this.#bucket.lastSeq;
    const reader = new StreamReader({
      stream: this.#bucket,
      link: this.#link,
      fromSeq: 1,
      // What was removed before is no current value.
      matches: (message) =>
        message.subject.startsWith(keys.slice(0, -1)) && (!message.removed || message.seq > present),
      deliver: (message) => deliver(toFleetValue(message)),
    });
    await reader.handedOver(present);
    return {
      stop: () => {
        reader.stop();
        return Promise.resolve();
      },
    };
  }

  async remove(key: string): Promise<void> {
    const answer = await this.#link.request({
      operation: "fleetRemove",
      about: key,
      apply: () => this.#bucket.append({ subject: key, bytes: new Uint8Array(), removed: true }),
    });
    if (answer.kind === "answered") return;
    throw new RuntimeFault("HF-4008", `Removal of fleet key ${key}: expected an answer, got none. Remove it again.`);
  }
}
