import { z } from "zod";
import { BlobFields } from "./blob-ref.ts";
import { ActorKey, Genesis } from "./ids.ts";
import { Principal } from "./principal.ts";
import { PlainEvent, RecordStatus } from "./record.ts";

/** One macrostep as operators replay it. Readers drop `rev` ≤ the last they have and treat a gap as lag. */
export const JournalEntry = z.object({
  v: z.literal(1),
  key: ActorKey,
  genesis: Genesis,
  rev: z.number(),
  prevRev: z.number(),
  event: PlainEvent,
  /** Fields of the event that are kept outside. */
  blobs: BlobFields.optional(),
  cause: z.object({
    kind: z.enum(["start", "event", "settled", "timer", "stop", "reconcile"]),
    id: z.string(),
  }),
  principal: Principal.optional(),
  from: z.unknown(),
  to: z.unknown(),
  status: RecordStatus,
  effects: z.array(z.string()),
  atMs: z.number(),
  machine: z.string(),
  node: z.string(),
});
export type JournalEntry = z.infer<typeof JournalEntry>;

/** Entries of one actor may share a message; entries of different actors may not. */
export const JournalBatch = z.array(JournalEntry).min(1);
export type JournalBatch = z.infer<typeof JournalBatch>;
