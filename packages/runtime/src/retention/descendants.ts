import type { ActorKey } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";

/**
 * Everything that an actor ever started, and what that started, as far as their journals still know.
 *
 * @throws RuntimeFault HF-2xxx for a journal that cannot be read here, or what the port throws
 */
export async function descendantsOf(
  { journal, codec }: Pick<NodeServices, "journal" | "codec">,
  root: ActorKey,
  signal: AbortSignal,
): Promise<readonly ActorKey[]> {
  const known = new Set([root]);
  // What is added while it is walked through is walked through as well.
  for (const key of known) {
    for (const { bytes } of await journal.read(key, signal)) {
      for (const entry of codec.decodeJournalBatch(bytes)) {
        for (const started of entry.starts ?? []) if (isActorKey(started.key)) known.add(started.key);
      }
    }
  }
  known.delete(root);
  return [...known];
}

/** Jobs have keys without a partition. */
const isActorKey = (key: string): boolean => key.includes(".");
