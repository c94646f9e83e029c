import { RuntimeFault } from "@holdfast/protocol";
import { lastSeqOf } from "./filtered-history.ts";
import type { Link } from "./link.ts";
import { OrderedReader } from "./ordered-reader.ts";
import { pause, throwIfAborted } from "./pause.ts";
import type { StreamMessage } from "./stream-message.ts";

export interface ReadHeadersOptions {
  readonly stream: string;
  readonly filter: string;
  readonly visit: (message: StreamMessage) => void;
  /** How long to stay at the end of the stream, ms. In a bucket what is written over and over is seen there at the latest. */
  readonly dwellMs: number;
  readonly expectedCreated?: string | undefined;
  readonly signal: AbortSignal;
}

const RECHECK_MS = 50;

/**
 * Visits the headers of all messages of a filter, and of those that are written while it reads and stays at the end: in a bucket that keeps
 * one value per key, a value that is replaced before the reader comes to it is seen behind the old end.
 *
 * @throws the reason of `signal`; RuntimeFault HF-4006 when the stream is missing or lost data, HF-4008 when nobody answered
 */
export async function readHeaders(link: Link, options: ReadHeadersOptions): Promise<void> {
  const { stream, filter, signal, expectedCreated, visit, dwellMs } = options;
  let fault: RuntimeFault | undefined;
  let targetSeq = await lastSeqOf(link, stream, [filter], signal);
  const reader = await OrderedReader.start(link, {
    stream,
    filters: [filter],
    fromSeq: 1,
    headersOnly: true,
    expectedCreated,
    deliver: visit,
    onFault: (seen) => (fault = seen),
  });
  try {
    while (reader.cursor < targetSeq && !reader.ended.aborted) {
      await pause(RECHECK_MS, AbortSignal.any([signal, reader.ended]));
      throwIfAborted(signal);
      if (reader.cursor < targetSeq) targetSeq = Math.min(targetSeq, await lastSeqOf(link, stream, [filter], signal));
    }
    await pause(dwellMs, AbortSignal.any([signal, reader.ended]));
    throwIfAborted(signal);
    if (fault !== undefined) throw fault;
    if (reader.ended.aborted)
      throw new RuntimeFault("HF-4008", `Stream ${stream}: reading its headers was cut off. Read them again.`, {
        facts: { stream },
      });
  } finally {
    await reader.stop();
  }
}
