import { z } from "zod";

/** Place of an envelope in the one count of a conversation: 1, 2, 3, … over every kind of envelope. */
export const EnvelopeSeq = z.int().min(1).brand<"EnvelopeSeq">();
export type EnvelopeSeq = z.infer<typeof EnvelopeSeq>;

/** Incarnation of a runner over one journal; grows by one each time the journal is opened. */
export const RunnerEpoch = z.int().min(1).brand<"RunnerEpoch">();
export type RunnerEpoch = z.infer<typeof RunnerEpoch>;

/**
 * How far the store of an engine's transcript has confirmed what it was given. A lower bound: too low keeps too much, too high loses. It counts
 * something else than `EnvelopeSeq`, so the two have different types and are never compared.
 */
export const StoreSeq = z.int().min(0).brand<"StoreSeq">();
export type StoreSeq = z.infer<typeof StoreSeq>;

/** Token of one journal, drawn when it is created: a sequence of another journal means nothing. */
export const JournalToken = z.string().regex(/^[a-z0-9]{16}$/, "16 characters of a-z and 0-9");
export type JournalToken = z.infer<typeof JournalToken>;

/** How far a reader has taken the envelopes of one journal; `seq` 0 is before the first. */
export const ReplayCursor = z
  .strictObject({ journal: JournalToken.optional(), seq: z.int().min(0) })
  .refine(({ journal, seq }) => journal !== undefined || seq === 0, {
    path: ["journal"],
    message: "needed with a place: it means nothing in another journal",
  });
export type ReplayCursor = z.infer<typeof ReplayCursor>;
