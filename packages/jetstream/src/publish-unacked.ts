import { headerBlock, MESSAGE_ID_HEADER } from "./header-block.ts";
import type { Link } from "./link.ts";

/**
 * Sends a message to a stream without asking the server for an acknowledgement.
 *
 * For senders whose receiver answers after its own commit: that answer says more than the stream's. Silence says nothing; the sender then
 * publishes again under the same id with `publishStored`, which the stream deduplicates.
 *
 * @returns false when nothing was handed to the socket
 */
export function publishUnacked(link: Link, subject: string, bytes: Uint8Array, messageId: string): boolean {
  if (!link.isConnected) return false;
  try {
    link.nc.publish(subject, bytes, { headers: headerBlock({ [MESSAGE_ID_HEADER]: messageId }) });
    return true;
  } catch {
    return false; // closed, or a malformed subject: the acknowledged publish that follows says which
  }
}
