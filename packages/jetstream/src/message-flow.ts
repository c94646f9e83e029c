// MessageFlow: what an OrderedReader hands over, at the pace of whoever takes it.
//
// Owns: the messages that wait to be taken, and whether a reader is open.
// Does not own: order, gaps, loss (OrderedReader).
//
//   L1  at most `capacity` messages wait: a full flow closes its reader, an emptied one opens another where the first one stopped
//   L2  a fault is thrown after everything that was read before it was taken

import type { RuntimeFault } from "@holdfast/protocol";
import { lastSeqOf } from "./filtered-history.ts";
import type { Link } from "./link.ts";
import { OrderedReader, type SeenMessage } from "./ordered-reader.ts";
import { pause } from "./pause.ts";
import type { StreamMessage } from "./stream-message.ts";

export interface MessageFlowOptions {
  readonly stream: string;
  readonly filters: readonly string[];
  readonly fromSeq: number;
  readonly headersOnly?: boolean | undefined;
  /** Ends after what is stored up to this sequence; default: never. */
  readonly throughSeq?: number | undefined;
  readonly expectedCreated?: string | undefined;
  readonly seen?: SeenMessage | undefined;
  /** Messages that may wait, default 512. */
  readonly capacity?: number | undefined;
  /** Ends the flow, without a fault. */
  readonly signal?: AbortSignal | undefined;
}

const CAPACITY = 512;
const RECHECK_MS = 2000;

/**
 * Messages of a stream in order, each once, across reconnects and restarts of the server. Ends with `signal`, with the link, or at
 * `throughSeq`.
 *
 * @throws RuntimeFault HF-4006 when the stream is missing, another one or lost data; HF-4007 when reading is not allowed; HF-4008 when
 *   JetStream did not answer at the beginning
 */
export async function* messageFlow(link: Link, options: MessageFlowOptions): AsyncGenerator<StreamMessage, void> {
  const capacity = options.capacity ?? CAPACITY;
  const ends = AbortSignal.any([link.closed, ...(options.signal === undefined ? [] : [options.signal])]);
  const lastSeq = (): Promise<number> => lastSeqOf(link, options.stream, options.filters, options.signal);
  let throughSeq = options.throughSeq ?? Number.POSITIVE_INFINITY;
  if (throughSeq !== Number.POSITIVE_INFINITY) throughSeq = Math.min(throughSeq, await lastSeq());
  let position = { cursor: Math.max(1, options.fromSeq) - 1, seen: options.seen };
  if (position.cursor >= throughSeq) return;
  let waiting: StreamMessage[] = [];
  let reader: OrderedReader | undefined;
  let fault: RuntimeFault | undefined;
  let news = new AbortController();
  const isFull = (): boolean => waiting.length >= capacity;
  const open = (): Promise<OrderedReader> =>
    OrderedReader.start(link, {
      stream: options.stream,
      filters: options.filters,
      headersOnly: options.headersOnly,
      expectedCreated: options.expectedCreated,
      fromSeq: position.cursor + 1,
      seen: position.seen,
      deliver: (message) => {
        if (message.seq <= throughSeq) waiting.push(message);
        if (isFull()) void reader?.stop(); // L1
        news.abort();
      },
      onFault: (found) => {
        fault = found;
        news.abort();
      },
    });

  try {
    while (!ends.aborted) {
      reader = await open();
      if (isFull()) void reader.stop();
      while (!ends.aborted) {
        while (waiting.length > 0) {
          const taken = waiting;
          waiting = [];
          for (const message of taken) {
            if (ends.aborted) return;
            yield message;
          }
        }
        if (fault !== undefined) throw fault; // L2
        if (reader.cursor >= throughSeq) return;
        if (reader.ended.aborted) break;
        news = new AbortController();
        await pause(RECHECK_MS, AbortSignal.any([news.signal, ends]));
        // What was to be the last one may have gone.
        if (waiting.length === 0 && throughSeq !== Number.POSITIVE_INFINITY && !ends.aborted)
          throughSeq = Math.min(throughSeq, await lastSeq());
      }
      position = { cursor: reader.cursor, seen: reader.seen };
    }
  } finally {
    await reader?.stop();
  }
}
