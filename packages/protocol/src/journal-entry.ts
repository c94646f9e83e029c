import { z } from "zod";
import { ActorKey, Genesis } from "./ids.ts";
import { MACROSTEP } from "./record.ts";

/** One macrostep as operators replay it. Readers drop `rev` ≤ the last they have and treat a gap as lag. */
export const JournalEntry = z.object({
  v: z.literal(1),
  key: ActorKey,
  genesis: Genesis,
  ...MACROSTEP,
  machine: z.string(),
  /** Name of the node that committed it; of the one that sent it where `writer` is absent. */
  node: z.string(),
});
export type JournalEntry = z.infer<typeof JournalEntry>;

/** Entries of one actor may share a message; entries of different actors may not. */
export const JournalBatch = z.array(JournalEntry).min(1);
export type JournalBatch = z.infer<typeof JournalBatch>;
