import { z } from "zod";

/** What is claimed of a namespace at rest. One claim is one row. */
export const Claim = z.enum([
  /** Every command that a client was told was taken is one macrostep, at the revision it was told; no command is two. */
  "acceptedAppliedOnce",
  /** Every outcome of a child was applied at most once, and every actor that ended told its living parent. */
  "delegationsSettledOnce",
  /** Every actor's journal has every revision from 1 to its record's, each with one content, each beginning where the last one ended. */
  "journalGapFree",
  /** The journal alone leads to the stored record. Needs a replay that is handed in. */
  "replaysToStored",
  /** In every partition and epoch one incarnation committed, and no actor went back to an earlier epoch. */
  "oneOwnerPerEpoch",
  /** Nothing waits: no message, no effect, no overdue timer, no child without a record. */
  "nothingStuck",
  /** The outside world counted no effect twice and none too few. Needs the ledger's log. */
  "ledgerClean",
]);
export type Claim = z.infer<typeof Claim>;

/** One thing that contradicts a claim. */
export const Finding = z.object({
  claim: Claim,
  /** What sort of contradiction, one word per sort, for counting. */
  code: z.string(),
  /** Actor key, partition, or what else it is about. */
  key: z.string(),
  /** Revision or sequence, when there is one. */
  at: z.number().optional(),
  expected: z.string(),
  found: z.string(),
});
export type Finding = z.infer<typeof Finding>;

export const Verdict = z.object({
  /** Every row that could be judged is true. */
  pass: z.boolean(),
  /** Claims that could be judged. */
  rows: z.partialRecord(Claim, z.boolean()),
  /** Claims that could not, and why. */
  leftOut: z.partialRecord(Claim, z.string()),
  findings: z.array(Finding),
  /** How much was looked at: a row over nothing proves nothing. */
  figures: z.object({
    actors: z.int(),
    entries: z.int(),
    /** Journal entries that were stored again with the same content. */
    repeated: z.int(),
    commands: z.int(),
    applied: z.int(),
    children: z.int(),
    settled: z.int(),
    replayed: z.int(),
    epochs: z.int(),
    ledgerEffects: z.int(),
  }),
});
export type Verdict = z.infer<typeof Verdict>;
