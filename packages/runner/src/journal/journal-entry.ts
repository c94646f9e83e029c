import { ActorId } from "@holdfast/protocol";
import { z } from "zod";
import { JournalToken, RunnerEpoch } from "../wire/coordinates.ts";
import { RunnerEnvelope } from "../wire/envelope.ts";
import { Speaker } from "../wire/opening.ts";

/** Format of the file. A reader refuses a greater one. */
export const JOURNAL_FORMAT = 1;

const Seq = z.int().min(0);

/** One entry of a runner's journal: what one write and one fsync put into the file, whole or not at all. */
export const JournalEntry = z.discriminatedUnion("kind", [
  /** The first entry, and no other: what lies before the envelopes that follow. */
  z.strictObject({
    kind: z.literal("base"),
    format: z.int().min(1),
    journal: JournalToken,
    epoch: z.int().min(0),
    conversation: ActorId.optional(),
    speaker: Speaker.optional(),
    lastSeq: Seq,
    confirmedStoreSeq: Seq,
    receipted: z.array(Seq),
  }),
  /** A runner opened the file. */
  z.strictObject({ kind: z.literal("opened"), epoch: RunnerEpoch }),
  /** The slot was bound to its conversation. */
  z.strictObject({ kind: z.literal("bound"), conversation: ActorId }),
  /** A host attached: a later runner must not listen to one of a smaller epoch. */
  z.strictObject({ kind: z.literal("attached"), speaker: Speaker }),
  /** Envelopes in their places, and receipts that came since the entry before. */
  z.strictObject({ kind: z.literal("batch"), envelopes: z.array(RunnerEnvelope), receipts: z.array(Seq) }),
]);
export type JournalEntry = z.infer<typeof JournalEntry>;
export type JournalEntryOf<Kind extends JournalEntry["kind"]> = Extract<JournalEntry, { kind: Kind }>;
