import { messageFlow, readNext, streamPosition, type Link, type StreamMessage } from "@holdfast/jetstream";
import {
  EVENT_ID_HEADER,
  parseEventId,
  RuntimeFault,
  tryDecodeLifecycleEvent,
  type EventPlace,
  type LifecycleEvent,
  type Subjects,
} from "@holdfast/protocol";
import { formatEventCursor, parseEventCursor } from "./event-cursor.ts";
import { eventFilters } from "./event-filters.ts";
import { EventMarks } from "./event-marks.ts";

export interface EventsOptions {
  /** What to hear, e.g. `task.*.*.completed` or `conversation.>`; NATS wildcards, `hf.<ns>.` in front is taken too. */
  readonly subject: string;
  /** A cursor as it was handed over, `first` for everything that is stored, `now` (default) for what comes. */
  readonly from?: string | undefined;
  /** Waits for more at the end; default true. */
  readonly follow?: boolean | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
  /** Told of a message that is no event of these; reading goes on. Default: it is thrown. */
  readonly unreadable?: ((fault: RuntimeFault) => void) | undefined;
}

export interface ReceivedEvent {
  readonly event: LifecycleEvent;
  /** NATS subject it was stored under. */
  readonly on: string;
  /** The position behind it. Store it with what the event made you do, and begin there again. */
  readonly cursor: string;
}

/** The first events stream holds all of them. */
const SHARD = 0;
const decoder = new TextDecoder();

/**
 * Public events in the order in which they were stored, each once, across reconnects and restarts of the broker; with a stored cursor also
 * across restarts of the reading process.
 *
 * @throws RuntimeFault HF-1001 for a subject, a cursor or an event that is none; HF-4006 when stored events were lost; HF-4009 when events
 *   behind the cursor were removed by age; HF-4007 without the right; HF-4008 when JetStream did not answer
 */
export async function* readEvents(
  link: Link,
  subjects: Subjects,
  options: EventsOptions,
): AsyncGenerator<ReceivedEvent, void> {
  const { from = "now", signal } = options;
  const stream = subjects.eventsStream(SHARD);
  const filters = eventFilters(subjects, options.subject);
  const position = await streamPosition(link, stream, signal);
  const seen = from === "first" || from === "now" ? undefined : parseEventCursor(from, position);
  const fromSeq = from === "first" ? 1 : (seen?.seq ?? position.lastSeq) + 1;
  const marks = new EventMarks(fromSeq <= 1);
  const flow = messageFlow(link, {
    stream,
    filters,
    fromSeq,
    seen,
    signal,
    expectedCreated: position.created,
    throughSeq: options.follow === false ? position.lastSeq : undefined,
  });
  for await (const message of flow) {
    const cursor = formatEventCursor(position, message);
    const read = decode(message, cursor);
    if (read instanceof RuntimeFault) {
      if (options.unreadable === undefined) throw read;
      options.unreadable(read);
      continue;
    }
    const judgement = marks.judge(read.place);
    if (judgement === "repeated") continue;
    const isFirstCopy = judgement === "fresh" || !(await wasStoredBefore(link, stream, message, signal));
    marks.note(read.place, isFirstCopy);
    if (isFirstCopy) yield { event: read.event, on: message.subject, cursor };
  }
}

function decode(
  message: StreamMessage,
  cursor: string,
): { readonly event: LifecycleEvent; readonly place: EventPlace } | RuntimeFault {
  const decoded = tryDecodeLifecycleEvent((name) => message.header(name), decoder.decode(message.bytes));
  const place = decoded.kind === "event" ? parseEventId(decoded.event.id) : undefined;
  if (decoded.kind === "event" && place !== undefined) return { event: decoded.event, place };
  const reason = decoded.kind === "event" ? `id ${decoded.event.id}` : decoded.reason;
  return new RuntimeFault(
    "HF-1001",
    `Event ${message.seq} on ${message.subject}: expected a CloudEvent of this namespace, found another message (${reason}). Go on from the cursor in the facts.`,
    { facts: { seq: message.seq, subject: message.subject, cursor } },
  );
}

/**
 * Whether an earlier message carries the same event. The broker forgets ids after minutes, and a reader that begins in the middle has not seen
 * what was before. Mostly one request: the events of a task have subjects of their own.
 */
async function wasStoredBefore(
  link: Link,
  stream: string,
  message: StreamMessage,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const id = message.header(EVENT_ID_HEADER);
  const first = await readNext(link, stream, message.subject, 1, { signal });
  if (first === undefined || first.seq >= message.seq) return false;
  if (first.header(EVENT_ID_HEADER) === id) return true;
  const { subject, seq } = message;
  const before = messageFlow(link, {
    stream,
    filters: [subject],
    fromSeq: first.seq + 1,
    throughSeq: seq - 1,
    headersOnly: true,
    signal,
  });
  for await (const earlier of before) if (earlier.header(EVENT_ID_HEADER) === id) return true;
  return false;
}
