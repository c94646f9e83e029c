import type { Codec } from "@holdfast/codec";
import { RuntimeFault, toPlainFault } from "@holdfast/protocol";
import type { InboxMessage } from "../ports/index.ts";

const KINDS: ReadonlySet<unknown> = new Set(["start", "send", "settled", "stop"]);

/** Why a message cannot be read: HF-2003 when its bytes are sound but of a schema or kind that only a newer build can know. */
export function unreadableMessage(codec: Codec, { key, seq, bytes }: InboxMessage, error: unknown): RuntimeFault {
  const newer = whatIsNewer(codec, bytes);
  if (newer !== undefined) {
    return new RuntimeFault(
      "HF-2003",
      `Message ${seq} of ${key}: ${newer}, which this build does not know. Deploy the build that sent it.`,
      { facts: { key, seq } },
    );
  }
  if (error instanceof RuntimeFault) return error;
  return new RuntimeFault("HF-1001", toPlainFault(error, "HF-1001").message, { cause: error });
}

function whatIsNewer(codec: Codec, bytes: Uint8Array): string | undefined {
  let value: unknown;
  try {
    value = codec.decodeValue(bytes);
  } catch {
    return undefined; // damaged, not newer
  }
  if (typeof value !== "object" || value === null || !("v" in value) || !("kind" in value)) return undefined;
  const { v, kind } = value;
  if (typeof v === "number" && v > 1) return `it has schema ${v}`;
  return v === 1 && typeof kind === "string" && !KINDS.has(kind) ? `it is of kind "${kind.slice(0, 40)}"` : undefined;
}
