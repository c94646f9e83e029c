import { z } from "zod";

/** One macrostep, as far as it is judged. */
export const CheckedEntry = z.looseObject({
  key: z.string(),
  /** Tells two actors of one key apart. */
  genesis: z.string(),
  rev: z.number(),
  prevRev: z.number(),
  event: z.looseObject({ type: z.string() }),
  cause: z.object({ kind: z.enum(["start", "event", "settled", "timer", "stop", "reconcile"]), id: z.string() }),
  /** Sender and counter of a message between actors. */
  sender: z.object({ key: z.string(), genesis: z.string(), n: z.number() }).optional(),
  principal: z.looseObject({ kind: z.string(), id: z.string() }).optional(),
  /** State value before and after. */
  from: z.unknown().optional(),
  to: z.unknown().optional(),
  status: z.string(),
  atMs: z.number(),
  /** Who committed it, and under which epoch of the partition's lease. Absent in entries of builds that did not store it. */
  writer: z.object({ incarnation: z.string(), epoch: z.number() }).optional(),
});
export type CheckedEntry = z.infer<typeof CheckedEntry>;

/** One message of a journal stream: one or more macrosteps of one actor. */
export interface JournalMessage {
  readonly stream: string;
  readonly seq: number;
  /** Actor that its subject names. */
  readonly key: string;
  readonly entries: readonly CheckedEntry[];
  /** The message as it is stored, for whoever replays it with another reader. */
  readonly bytes: Uint8Array;
}
