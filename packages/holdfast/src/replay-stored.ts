import type { NamespaceReader } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import {
  actorRefExtension,
  compareWithStored,
  replay,
  unsentEntries,
  type CompiledMachine,
  type Difference,
  type Replay,
  type ReplayEnd,
  type ReplayedStep,
} from "@holdfast/durable";
import {
  parseActorKey,
  RuntimeFault,
  type ActorRecord,
  type JournalEntry,
  type PartitionScheme,
  type PlainEvent,
} from "@holdfast/protocol";
import { chooseBlobs, compileTypes, type ActorDefinition } from "@holdfast/runtime";

/**
 * Machines of actor types as nodes serve them; jobs are not looked at.
 * @throws RuntimeFault HF-1003 when a machine cannot be made durable
 */
export const compileActors = (definitions: readonly ActorDefinition[]): readonly CompiledMachine[] =>
  [...compileTypes(definitions).values()].map(({ compiled }) => compiled);

/** A journal entry as it is stored, where that is, and its whole event. */
export interface JournalLine {
  /** Sequence in the journal stream; undefined while it waits in the outbox of its record. */
  readonly seq: number | undefined;
  readonly entry: JournalEntry;
  /** With what of it is kept outside of the entry. */
  readonly event: PlainEvent;
}

/** Everything of an actor that a replay needs. */
export interface StoredActorJournal {
  readonly record: ActorRecord;
  /** In stored order; repeated ones among them, and last what the record still has to send. */
  readonly lines: readonly JournalLine[];
}

/**
 * Reads an actor for a replay. The record first: an actor that goes on has a journal that is ahead of it, never behind.
 * @returns undefined when there is no such actor
 * @throws RuntimeFault HF-2002, HF-2003 when its record cannot be read here, HF-3007 when a payload is missing
 */
export async function readForReplay(read: NamespaceReader, key: string): Promise<StoredActorJournal | undefined> {
  const stored = await read.actorAsStored(key);
  if (stored === undefined) return undefined;
  const { record } = stored;
  const lines: JournalLine[] = [];
  for (const { seq, entries } of await read.journalAsStored(key))
    for (const entry of entries) lines.push({ seq, entry, event: await read.eventOf(entry) });
  for (const entry of unsentEntries(record)) lines.push({ seq: undefined, entry, event: await read.eventOf(entry) });
  return { record, lines };
}

export interface StoredReplayOptions {
  /** What `compileActors` gave. */
  readonly machines: readonly CompiledMachine[];
  /** The manifest of the namespace. */
  readonly scheme: PartitionScheme;
  /** Stops after the entries of this journal sequence. */
  readonly toSeq?: number | undefined;
}

/** A step of a replay, and the journal sequence that its entry has. */
export interface StoredStep extends ReplayedStep {
  readonly seq: number | undefined;
}

export interface StoredReplay {
  readonly steps: readonly StoredStep[];
  readonly end: ReplayEnd;
  readonly repeated: number;
  /** Where the stored record differs from what the journal leads to. Undefined when that was not reached, or not asked for (`toSeq`). */
  readonly differences: readonly Difference[] | undefined;
}

/**
 * Replays the journal of one actor and compares its end, at the revision of the record, with the stored record. Pure.
 * @throws RuntimeFault HF-3002 when no machine is for the type of the actor
 */
export function replayStored(
  { record, lines }: StoredActorJournal,
  { machines, scheme, toSeq }: StoredReplayOptions,
): StoredReplay {
  const { type } = parseActorKey(record.key);
  const types = new Set(machines.map((machine) => machine.type));
  if (!types.has(type)) {
    throw new RuntimeFault(
      "HF-3002",
      `${record.key}: expected a machine for the type "${type}", known are ${[...types].join(", ")}. Replay it with a build that serves it.`,
    );
  }
  const isReplayed = ({ seq, entry }: JournalLine): boolean =>
    entry.genesis === record.genesis && (toSeq === undefined || (seq ?? Infinity) <= toSeq);
  const chosen = lines.filter(isReplayed);
  const events = new Map(chosen.map(({ entry, event }) => [entry, event]));
  const result = replay(
    chosen.map(({ entry }) => entry),
    {
      machines,
      scheme,
      outside: chooseBlobs(createCodec({ ref: actorRefExtension })).outside,
      eventOf: (entry) => events.get(entry) ?? entry.event,
    },
  );
  const seqs = new Map(chosen.toReversed().map(({ seq, entry }) => [entry.rev, seq])); // the first counts
  return {
    ...result,
    steps: result.steps.map((step) => ({ ...step, seq: seqs.get(step.entry.rev) })),
    differences: toSeq === undefined ? differencesAt(result, record) : undefined,
  };
}

/** The journal may be ahead of a record that was read before it. */
function differencesAt({ steps, end }: Replay, stored: ActorRecord): readonly Difference[] | undefined {
  if (end.kind !== "complete" && steps.length < stored.rev) return undefined;
  return compareWithStored(steps.slice(0, stored.rev), stored);
}
