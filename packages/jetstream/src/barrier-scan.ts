import { RuntimeFault } from "@holdfast/protocol";
import type { Link } from "./link.ts";
import { OrderedReader } from "./ordered-reader.ts";
import { pause, throwIfAborted } from "./pause.ts";
import { publishStored } from "./publish.ts";
import type { StreamMessage } from "./stream-message.ts";

export interface BarrierScanOptions {
  readonly stream: string;
  readonly filter: string;
  readonly fromSeq: number;
  /** Subject below `filter` to which the barrier is written. */
  readonly barrierSubject: string;
  readonly barrierBytes: Uint8Array;
  readonly headersOnly: boolean;
  /** Chooses otherwise once it is known where the scan ends; `filter` must still match what is wanted, and the barrier. */
  readonly narrow?: (barrierSeq: number) => { readonly filter: string; readonly headersOnly: boolean };
  /** Every message found before the barrier, oldest first; barriers of others too. */
  readonly visit: (message: StreamMessage) => void;
  readonly expectedCreated?: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Writes a barrier, then reads the subjects of `filter` until something at or after the barrier arrives.
 *
 * The end of such a read cannot be told in any other way. The last sequence of the stream may belong to subjects outside the filter, so it
 * never comes; an empty filter yields nothing at all; and on a replicated stream the consumer may sit on a replica that says "nothing
 * pending" while an acknowledged message is still on its way to it. A message stored after all the others, in the same stream, proves it.
 *
 * @returns the sequence of the barrier: everything stored before it was visited
 * @throws the reason of `signal`; RuntimeFault HF-4004 when the barrier was refused for good, HF-4008 when the connection was closed,
 *   HF-4006 when the stream lost data
 */
export async function barrierScan(link: Link, options: BarrierScanOptions): Promise<number> {
  const barrierSeq = await writeBarrier(link, options);
  const { filter, headersOnly } = options.narrow?.(barrierSeq) ?? options;
  const reached = Promise.withResolvers<void>();
  // It may be settled before it is waited for, while the reader is being made, or after an earlier throw.
  reached.promise.catch(() => undefined);
  const onAbort = (): void => reached.reject(options.signal.reason);
  options.signal.addEventListener("abort", onAbort, { once: true });
  let reader: OrderedReader | undefined;
  try {
    throwIfAborted(options.signal);
    reader = await OrderedReader.start(link, {
      stream: options.stream,
      filters: [filter],
      // A checkpoint newer than the barrier would make the reader wait for a message that may never come.
      fromSeq: Math.min(options.fromSeq, barrierSeq),
      headersOnly,
      expectedCreated: options.expectedCreated,
      deliver: (message) => {
        // With one value per subject, a later barrier of another writer replaces this one; what arrives is later than ours either way.
        if (message.seq >= barrierSeq) reached.resolve();
        else options.visit(message);
      },
      onFault: (fault) => reached.reject(fault),
    });
    await reached.promise;
    return barrierSeq;
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    await reader?.stop();
  }
}

async function writeBarrier(link: Link, options: BarrierScanOptions): Promise<number> {
  // Without an id: a barrier stored twice is harmless, a barrier that the broker takes for a duplicate is not.
  for (;;) {
    const outcome = await publishStored(link, {
      subject: options.barrierSubject,
      bytes: options.barrierBytes,
      signal: options.signal,
    });
    if (outcome.kind === "accepted") return outcome.seq;
    if (outcome.kind === "refused" && !outcome.retryable) {
      throw new RuntimeFault(
        outcome.code,
        `Barrier on ${options.barrierSubject}: ${outcome.reason}. Grant the write, or look at the stream's limits.`,
        { facts: { subject: options.barrierSubject } },
      );
    }
    throwIfAborted(options.signal);
    if (link.closed.aborted) {
      throw new RuntimeFault(
        "HF-4008",
        `Scan of ${options.filter} in ${options.stream}: the connection was closed before its barrier was stored. Connect and scan again.`,
        { facts: { stream: options.stream, filter: options.filter } },
      );
    }
    await link.whenConnected(1000, options.signal);
    await pause(50, options.signal);
  }
}
