import { MESSAGE_ID_HEADER, type StreamMessage } from "@holdfast/jetstream";
import { ActorKey, parseInboxSubject, RuntimeFault, type Subjects } from "@holdfast/protocol";
import type { InboxMessage } from "@holdfast/runtime/ports";

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
