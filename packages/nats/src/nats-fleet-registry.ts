import {
  compareAndSet,
  KV_OPERATION_HEADER,
  publishStored,
  purgeBelow,
  readLast,
  readSeq,
  watchBucket,
  type Link,
} from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { CommitOutcome, FleetRegistry, FleetValue } from "@holdfast/runtime/ports";
import { jsonToken } from "./json-token.ts";
import { blobsHeader } from "./blobs-header.ts";
import type { NamespaceStreams } from "./namespace-streams.ts";

/** A removed key leaves a mark that watchers see. Marks older than this are taken away by whoever starts a watch. */
const FORGET_REMOVALS_AFTER_MS = 60 * 60 * 1000;
const nothing = new Uint8Array(0);

/** The fleet bucket of a namespace, or another bucket of small values. A watcher sees a removed key as a value without bytes. */
export class NatsFleetRegistry implements FleetRegistry {
  readonly #link: Link;
  readonly #stream: string;
  readonly #bucket: string;
  readonly #onFault: (fault: RuntimeFault) => void;
  readonly #forgetAfterMs: number;

  constructor(
    link: Link,
    streams: NamespaceStreams,
    onFault: (fault: RuntimeFault) => void,
    forgetRemovalsAfterMs = FORGET_REMOVALS_AFTER_MS,
    bucket = streams.subjects.fleetBucket,
  ) {
    this.#link = link;
    this.#forgetAfterMs = forgetRemovalsAfterMs;
    this.#bucket = bucket;
    this.#stream = `KV_${this.#bucket}`;
    this.#onFault = onFault;
  }

  /** @returns undefined when it was not acknowledged; it may be stored all the same */
  async put(
    key: string,
    bytes: Uint8Array,
    blobs: readonly string[] = [],
  ): Promise<{ readonly seq: number; readonly storedAtMs: number } | undefined> {
    const outcome = await publishStored(this.#link, {
      subject: this.#subject(key),
      bytes,
      headers: blobsHeader(blobs),
    });
    if (outcome.kind !== "accepted") return undefined;
    // An acknowledgement carries no time; the leader's copy of the message does.
    const stored = await readSeq(this.#link, this.#stream, outcome.seq, { retryForMs: 2000 }).catch(asUnanswered);
    return stored === undefined ? undefined : { seq: outcome.seq, storedAtMs: stored.storedAtMs };
  }

  async compareAndSet(key: string, bytes: Uint8Array, expectedSeq: number, token: string): Promise<CommitOutcome> {
    const set = (over: number): Promise<CommitOutcome> =>
      compareAndSet(this.#link, {
        stream: this.#stream,
        subject: this.#subject(key),
        bytes,
        expectedSeq: over,
        token,
        tokenOf: jsonToken,
      });
    const outcome = await set(expectedSeq);
    if (outcome.kind !== "stale" || outcome.currentSeq === undefined) return outcome;
    // A removed key leaves a mark behind, which counts as a message; for the caller the key is not there.
    const current = await this.#read(key);
    if (current?.removed !== true) return outcome;
    return expectedSeq === 0 ? set(current.value.seq) : { kind: "stale", currentSeq: undefined };
  }

  async get(key: string): Promise<FleetValue | undefined> {
    const current = await this.#read(key);
    return current === undefined || current.removed ? undefined : current.value;
  }

  async watch(deliver: (value: FleetValue) => void, keys = ">"): Promise<{ stop(): Promise<void> }> {
    const newestAtStart = await readLast(this.#link, this.#stream, this.#subject(keys));
    const oldRemovals: FleetValue[] = [];
    const reader = await watchBucket(this.#link, {
      bucket: this.#bucket,
      keys,
      onFault: this.#onFault,
      deliver: ({ key, bytes, seq, storedAtMs, removed }) => {
        const value = { key, bytes, seq, storedAtMs };
        const isPast = removed && seq <= (newestAtStart?.seq ?? 0);
        if (!isPast) deliver(value); // what was removed before is no current value
        else if ((newestAtStart?.storedAtMs ?? 0) - storedAtMs >= this.#forgetAfterMs) oldRemovals.push(value);
      },
    });
    const sweeping = this.#forget(oldRemovals, reader.ended);
    return {
      stop: async () => {
        await reader.stop();
        await sweeping;
      },
    };
  }

  /** @throws RuntimeFault HF-4008 when it was not acknowledged */
  async remove(key: string): Promise<void> {
    const outcome = await publishStored(this.#link, {
      subject: this.#subject(key),
      bytes: nothing,
      headers: { [KV_OPERATION_HEADER]: "DEL" },
    });
    if (outcome.kind === "accepted") return;
    throw new RuntimeFault(
      "HF-4008",
      `Removal of fleet key ${key}: expected an acknowledgement, found none (${outcome.reason}). Remove it again.`,
      { facts: { key } },
    );
  }

  async #read(key: string): Promise<{ readonly value: FleetValue; readonly removed: boolean } | undefined> {
    const stored = await readLast(this.#link, this.#stream, this.#subject(key));
    if (stored === undefined) return undefined;
    const { bytes, seq, storedAtMs } = stored;
    return { value: { key, bytes, seq, storedAtMs }, removed: stored.header(KV_OPERATION_HEADER) !== undefined };
  }

  /** Only the marks go: a purge below `seq + 1` leaves a newer value of the key alone. A failure costs nothing but room. */
  async #forget(removals: readonly FleetValue[], ended: AbortSignal): Promise<void> {
    for (const { key, seq } of removals) {
      if (ended.aborted) return;
      const options = { stream: this.#stream, filter: this.#subject(key), belowSeq: seq + 1 };
      await purgeBelow(this.#link, options).catch(asUnanswered);
    }
  }

  #subject(key: string): string {
    return `$KV.${this.#bucket}.${key}`;
  }
}

/** @throws what is not a fault of the connection */
function asUnanswered(error: unknown): undefined {
  if (error instanceof RuntimeFault) return undefined;
  throw error;
}
