import { MESSAGE_ID_HEADER, type StreamMessage } from "@holdfast/jetstream";
import { ActorKey, parseInboxSubject, RuntimeFault, type Subjects } from "@holdfast/protocol";
import type { InboxMessage } from "@holdfast/runtime/ports";

type Origin = Pick<InboxMessage, "key" | "lane" | "principal">;

/** Subjects whose origin is remembered: an actor gets many messages under few subjects. */
const MAX_REMEMBERED = 4096;

/**
 * Reads messages of the inbox streams. What a subject says is the same every time.
 *
 * @returns undefined for a subject that this project does not write
 */
export function inboxMessageReader(subjects: Subjects): (message: StreamMessage) => InboxMessage | undefined {
  const origins = new Map<string, Origin>();
  return (message) => {
    let origin = origins.get(message.subject);
    if (origin === undefined) {
      origin = readOrigin(subjects, message.subject);
      if (origin === undefined || !ActorKey.safeParse(origin.key).success) return undefined;
      if (origins.size >= MAX_REMEMBERED) origins.clear();
      origins.set(message.subject, origin);
    }
    return withOrigin(origin, message);
  };
}

const withOrigin = ({ key, lane, principal }: Origin, message: StreamMessage): InboxMessage => ({
  key,
  lane,
  principal,
  seq: message.seq,
  bytes: message.bytes,
  storedAtMs: message.storedAtMs,
  messageId: message.header(MESSAGE_ID_HEADER) ?? "",
});

/**
 * Reads a message of an inbox or parked stream.
 *
 * Lane, address and principal come from the subject alone: NATS permissions guard the subject, nothing guards a payload or a header.
 *
 * @returns undefined when the subject is not one that this project writes
 */
export function toInboxMessage(subjects: Subjects, message: StreamMessage): InboxMessage | undefined {
  const origin = readOrigin(subjects, message.subject);
  if (origin === undefined || !ActorKey.safeParse(origin.key).success) return undefined;
  return {
    key: origin.key,
    lane: origin.lane,
    principal: origin.principal,
    seq: message.seq,
    bytes: message.bytes,
    storedAtMs: message.storedAtMs,
    messageId: message.header(MESSAGE_ID_HEADER) ?? "",
  };
}

function readOrigin(subjects: Subjects, subject: string): Pick<InboxMessage, "key" | "lane" | "principal"> | undefined {
  const parkedPrefix = subjects.parked("");
  if (subject.startsWith(parkedPrefix)) {
    return { key: subject.slice(parkedPrefix.length), lane: "inbox", principal: undefined };
  }
  try {
    const origin = parseInboxSubject(subjects.ns, subject);
    return origin === undefined ? undefined : { ...origin, principal: origin.principal };
  } catch (error) {
    if (error instanceof RuntimeFault) return undefined; // a principal token of no known shape
    throw error;
  }
}
