import { fnv1a32, RuntimeFault } from "@holdfast/protocol";
import type { SeenMessage, StreamPosition } from "@holdfast/jetstream";

const CURSOR = /^e1-(?<stream>[0-9a-f]{8})-(?<seq>[0-9]{1,15})-(?<storedAtMs>[0-9]{1,15})$/;

/** The position behind a message of the events stream, as an opaque word: which stream, which message, and when that was stored. */
export const formatEventCursor = (stream: Pick<StreamPosition, "created">, { seq, storedAtMs }: SeenMessage): string =>
  `e1-${streamMark(stream)}-${seq}-${storedAtMs}`;

/**
 * The message that a cursor stands behind.
 *
 * @throws RuntimeFault HF-1001 when it is no cursor; HF-4006 when it belongs to a stream that is gone; HF-4009 when events behind it may
 *   have been removed by age
 */
export function parseEventCursor(
  cursor: string,
  stream: Pick<StreamPosition, "created" | "firstSeq" | "lastSeq">,
): SeenMessage {
  const found = CURSOR.exec(cursor)?.groups;
  if (found === undefined) {
    throw new RuntimeFault(
      "HF-1001",
      `Cursor "${cursor.slice(0, 100)}": expected the cursor of an event, "first" or "now". Use one as it was handed over.`,
    );
  }
  if (found["stream"] !== streamMark(stream)) {
    throw new RuntimeFault(
      "HF-4006",
      `Cursor ${cursor}: expected the stream of events it was made for, found one created at ${stream.created}. Begin with "first"; events have the ids they had.`,
      { facts: { cursor } },
    );
  }
  const seq = Number(found["seq"]);
  if (stream.firstSeq > seq + 1) {
    throw new RuntimeFault(
      "HF-4009",
      `Cursor ${cursor}: expected event ${seq + 1} to be stored, found ${stream.firstSeq} as the oldest. Some may have been missed: read what they told of from the records, and begin with "first".`,
      { facts: { cursor, firstSeq: stream.firstSeq } },
    );
  }
  return { seq, storedAtMs: Number(found["storedAtMs"]) };
}

const streamMark = ({ created }: Pick<StreamPosition, "created">): string =>
  fnv1a32(created).toString(16).padStart(8, "0");
