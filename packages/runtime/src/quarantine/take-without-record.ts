import { RuntimeFault } from "@holdfast/protocol";
import type { MailboxItem } from "../mailbox.ts";
import { resendRequestOf } from "../link-gaps/resend-missing.ts";
import { outcomeOfDrop } from "../message-reading.ts";
import type { InboxMessage } from "../ports/index.ts";
import { skipMessage, type SkipParts } from "./skip-message.ts";

/**
 * What happens to a message whose actor has no readable record here.
 * @param take  takes it as if there were one: a start makes it
 * @returns false when it must be tried again
 */
export function takeWithoutRecord(
  parts: SkipParts,
  { message, isReoffered }: Extract<MailboxItem, { kind: "message" }>,
  take: () => Promise<boolean>,
): Promise<boolean> {
  const { mail, quarantine } = parts;
  const { unreadable } = parts.stores.holder;
  if (unreadable !== undefined) return mail.park(message, isReoffered, unreadable);
  if (quarantine.takeSkip(message)) return skipMessage(parts, message, isReoffered);
  const read = mail.read(message);
  if (read instanceof RuntimeFault) return quarantine.unreadableMessage(message, isReoffered, read);
  if (read.step.kind === "start") return take();
  if (resendRequestOf(read.step) !== undefined) return mail.finish(message, isReoffered); // nobody is left to answer it
  const isInside = message.principal === undefined && read.step.kind === "event";
  if (isInside) return waitForStart(parts, message, isReoffered); // F17
  return mail.refuse(message, isReoffered, read, outcomeOfDrop("not-started", undefined));
}

/** A message that came before its actor waits for a while; then it is a dead letter. Its start may lie unread until the inbox was caught up with. */
async function waitForStart(
  { mail, quarantine, place }: SkipParts,
  message: InboxMessage,
  isReoffered: boolean,
): Promise<boolean> {
  const { key, host, services } = place;
  const { orphanMs } = services.settings;
  const dueMs = message.storedAtMs + orphanMs;
  if (isReoffered && host.isCaughtUp && services.time.nowMs() >= dueMs) {
    const fault = new RuntimeFault(
      "HF-3103",
      `Message ${message.messageId}: ${key} was not started within ${orphanMs} ms. Start it, then retry, or skip the message.`,
    );
    return quarantine.takeOut(message, isReoffered, fault);
  }
  if (!(await mail.park(message, isReoffered, "its start has not arrived"))) return false;
  host.waits(key, dueMs);
  return true;
}
