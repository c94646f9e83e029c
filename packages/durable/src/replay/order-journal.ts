import type { ActorRecord, JournalEntry } from "@holdfast/protocol";
import { journalEntryOf } from "../journal-entry-of.ts";
import { differences, type Difference } from "./differences.ts";

/** Entries of one incarnation, each revision once, in order. */
export interface OrderedJournal {
  readonly entries: readonly JournalEntry[];
  /** Entries that were stored again with the same content. */
  readonly repeated: number;
  /** The first revision that was stored with two contents, and where they differ. */
  readonly contradiction?: { readonly rev: number; readonly difference: Difference };
}

/**
 * The journal of an actor's latest incarnation out of everything that is stored under its key.
 *
 * An entry may be stored several times, by several nodes: the first counts, and every other must decide the same.
 */
export function orderJournal(stored: readonly JournalEntry[]): OrderedJournal {
  const genesis = latestGenesis(stored);
  const byRev = new Map<number, JournalEntry>();
  let repeated = 0;
  let contradiction: OrderedJournal["contradiction"];
  for (const entry of stored) {
    if (entry.genesis !== genesis) continue;
    const first = byRev.get(entry.rev);
    if (first === undefined) {
      byRev.set(entry.rev, entry);
      continue;
    }
    const [difference] = differences(decided(first), decided(entry));
    if (difference === undefined) repeated += 1;
    else contradiction ??= { rev: entry.rev, difference };
  }
  const entries = [...byRev.values()].toSorted((one, other) => one.rev - other.rev);
  return { entries, repeated, ...(contradiction === undefined ? {} : { contradiction }) };
}

/** The one that was heard of last: late repeats of a former one do not bring it back. */
function latestGenesis(stored: readonly JournalEntry[]): string | undefined {
  const seen = new Set(stored.map(({ genesis }) => genesis));
  return [...seen].at(-1);
}

/** What was decided, whoever sent it. */
function decided({ node: _node, machine: _machine, ...entry }: JournalEntry): Omit<JournalEntry, "node" | "machine"> {
  return entry;
}

/** Entries that a stored record still has to send. Whoever compares a journal with it takes them as stored. */
export const unsentEntries = (record: ActorRecord): readonly JournalEntry[] =>
  record.outbox.flatMap((effect) => (effect.kind === "journal" ? [journalEntryOf(record, effect, "unknown")] : []));
