// HostCursor — how far one host has taken the envelopes of a runner.
//   C1 commit-before-cursor  the cursor passes a durable envelope only after it is stored; see `receive`
//   C2 no-holes              an envelope beyond the next place is never applied: it is a fault, or a gap that was announced
//   C3 one-journal           places of another journal mean nothing: the cursor begins anew, and says so
//   C4 no-way-back           a runner of an older epoch is a leftover: nothing of it is applied

import { orderFault } from "../runner-fault.ts";
import type { RunnerEnvelope } from "../wire/envelope.ts";
import type { ReplayGap } from "./retained-window.ts";

export interface HostCursor {
  readonly journal: string;
  /** Greatest epoch seen of it. */
  readonly epoch: number;
  /** The last place that was taken; 0 before the first. */
  readonly seq: number;
}

/** What a runner says before its first envelope. */
export interface RunnerGreeting {
  readonly journal: string;
  readonly epoch: number;
  readonly lastSeq: number;
}

/**
 * How a greeting fits to what is known. `recreated`: the journal is another one, so whatever was not taken from the old one is lost with it.
 *
 * @throws RunnerFault HF-9002 when the runner is of an older epoch (C4), or its journal ends before the cursor
 */
export function greet(
  known: HostCursor | undefined,
  greeting: RunnerGreeting,
): { readonly kind: "first" | "same" | "restarted" | "recreated"; readonly cursor: HostCursor } {
  const { journal, epoch, lastSeq } = greeting;
  if (known === undefined) return { kind: "first", cursor: { journal, epoch, seq: 0 } };
  if (known.journal !== journal) return { kind: "recreated", cursor: { journal, epoch, seq: 0 } }; // C3
  if (epoch < known.epoch)
    throw orderFault("Host", `a runner of epoch ${epoch} greets, ${known.epoch} was seen before`, {
      found: epoch,
      known: known.epoch,
    });
  if (lastSeq < known.seq)
    throw orderFault("Host", `the journal ends at ${lastSeq}, ${known.seq} was taken from it before`, {
      found: lastSeq,
      known: known.seq,
    });
  return { kind: epoch === known.epoch ? "same" : "restarted", cursor: { ...known, epoch } };
}

/**
 * Whether an envelope is the next one. `duplicate` has been taken before and is passed over.
 *
 * @throws RunnerFault HF-9002 when it lies beyond the next place (C2), or is of an epoch that the greeting did not name
 */
export function nextOf(cursor: HostCursor, envelope: RunnerEnvelope): "next" | "duplicate" {
  if (envelope.epoch > cursor.epoch)
    throw orderFault(
      "Host",
      `envelope ${envelope.seq} is of epoch ${envelope.epoch}, the runner greeted with ${cursor.epoch}`,
      {
        found: envelope.epoch,
        known: cursor.epoch,
      },
    );
  if (envelope.seq <= cursor.seq) return "duplicate";
  if (envelope.seq === cursor.seq + 1) return "next";
  throw orderFault("Host", `envelope ${cursor.seq + 1} expected, ${envelope.seq} came`, {
    expected: cursor.seq + 1,
    found: envelope.seq,
  });
}

/** The cursor behind `envelope`. */
export const advance = (cursor: HostCursor, envelope: RunnerEnvelope): HostCursor => ({ ...cursor, seq: envelope.seq });

/** The cursor behind a gap that was announced: what lies in it comes from the transcript's store, or not at all. */
export const passGap = (cursor: HostCursor, gap: ReplayGap): HostCursor => ({
  ...cursor,
  seq: Math.max(cursor.seq, gap.firstRetainedSeq - 1),
});
