import { RuntimeFault } from "@holdfast/protocol";
import type { MailboxItem } from "../mailbox.ts";
import { outcomeOfDrop } from "../message-reading.ts";
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
  const isInside = message.principal === undefined && read.step.kind === "event";
  if (isInside) return mail.park(message, isReoffered, "its start has not arrived"); // F17
  return mail.refuse(message, isReoffered, read, outcomeOfDrop("not-started", undefined));
}
