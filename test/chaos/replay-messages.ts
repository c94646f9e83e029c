import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { MESSAGE_ID_HEADER, type Link } from "@holdfast/jetstream";
import { setTimeout as pause } from "node:timers/promises";

/** The broker forgets ids of messages after this; a real one does after minutes. Nanoseconds. */
const SHORT_WINDOW_NS = 100_000_000;
const FORGOTTEN_AFTER_MS = 250;

/**
 * Stores messages of a stream once more, with their subjects and ids, as a sender that never got its answer would. The broker is made to forget
 * their ids first: then nobody but the receiver knows that they are duplicates (I5).
 *
 * @param choose  sequences among the first and the last one
 * @returns how many were stored again
 */
export async function replayMessages(
  link: Link,
  stream: string,
  choose: (firstSeq: number, lastSeq: number) => readonly number[],
): Promise<number> {
  const manager = await jetstreamManager(link.nc);
  const client = jetstream(link.nc);
  const { config, state } = await manager.streams.info(stream);
  if (state.messages === 0) return 0;
  let stored = 0;
  await manager.streams.update(stream, { ...config, duplicate_window: SHORT_WINDOW_NS });
  try {
    await pause(FORGOTTEN_AFTER_MS);
    for (const seq of choose(state.first_seq, state.last_seq)) {
      const message = await manager.streams.getMessage(stream, { seq }).catch(() => undefined); // trimmed meanwhile
      if (message === null || message === undefined) continue;
      const msgID = message.header.get(MESSAGE_ID_HEADER);
      const { duplicate } = await client.publish(message.subject, message.data, { msgID });
      if (!duplicate) stored += 1;
    }
  } finally {
    await manager.streams.update(stream, { ...config });
  }
  return stored;
}
