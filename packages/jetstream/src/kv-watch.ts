import type { RuntimeFault } from "@holdfast/protocol";
import { readLast } from "./leader-read.ts";
import type { Link } from "./link.ts";
import { OrderedReader } from "./ordered-reader.ts";
import { pause } from "./pause.ts";

/** Header of a key-value bucket that marks a removed key; its value is empty. */
export const KV_OPERATION_HEADER = "KV-Operation";

/** A value of a bucket. `bytes` are empty when `removed`. */
export interface KvValue {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly seq: number;
  /** Broker time, Unix ms. */
  readonly storedAtMs: number;
  readonly removed: boolean;
}

export interface KvWatchOptions {
  readonly bucket: string;
  /** Keys that are wanted, wildcards allowed; default: all. */
  readonly keys?: string | undefined;
  readonly deliver: (value: KvValue) => void;
  readonly onFault: (fault: RuntimeFault) => void;
  readonly expectedCreated?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const RECHECK_MS = 2000;

/**
 * All current values of a bucket that keeps one value per key, then every change, in order, across reconnects.
 *
 * Resolves once the current values were delivered. A watch has no marker for that (counting down the pending ones stops early under
 * concurrent writes, an empty bucket sends nothing), so the leader is asked for the newest message there is, and that one is waited for.
 *
 * @throws RuntimeFault as OrderedReader.start
 */
export async function watchBucket(link: Link, options: KvWatchOptions): Promise<OrderedReader> {
  const stream = `KV_${options.bucket}`;
  const prefix = `$KV.${options.bucket}.`;
  const filter = `${prefix}${options.keys ?? ">"}`;
  const newest = await readLast(link, stream, filter, { signal: options.signal });
  let targetSeq = newest?.seq ?? 0;
  const complete = new AbortController();
  const reader = await OrderedReader.start(link, {
    stream,
    filters: [filter],
    fromSeq: 1,
    expectedCreated: options.expectedCreated,
    deliver: (message) => {
      const operation = message.header(KV_OPERATION_HEADER);
      options.deliver({
        key: message.subject.slice(prefix.length),
        bytes: message.bytes,
        seq: message.seq,
        storedAtMs: message.storedAtMs,
        removed: operation === "DEL" || operation === "PURGE",
      });
      if (message.seq >= targetSeq) complete.abort();
    },
    onFault: options.onFault,
  });
  while (reader.cursor < targetSeq && !reader.ended.aborted && options.signal?.aborted !== true) {
    await pause(RECHECK_MS, AbortSignal.any([complete.signal, reader.ended]));
    if (reader.cursor >= targetSeq) break;
    // The awaited message may have been removed by a purge; a later one would have ended the wait.
    const now = await readLast(link, stream, filter, { signal: options.signal });
    targetSeq = Math.min(targetSeq, now?.seq ?? 0);
  }
  return reader;
}
