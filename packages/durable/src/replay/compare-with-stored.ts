import type { ActorRecord, ChildEntry, Effect } from "@holdfast/protocol";
import { differences, type Difference } from "./differences.ts";
import { plainView } from "./plain-view.ts";
import type { ReplayedStep } from "./replay.ts";

/** What a stored record has that no journal knows, and that is therefore never compared. */
export const NOT_COMPARED: readonly string[] = [
  "considered: how far its inbox was read",
  "inputHash: what was started with other content, which older builds did not ask",
  "the header: token, epoch and writer of the last write, list fields",
  "children.*.attempt and .runner: marks of attempts, stored without a macrostep",
  "which effects still wait; those that do are compared one by one",
  "stack and facts of errors",
  "of a tombstone everything but who it was, how it ended, and a result that it still holds",
];

/**
 * Everything of a record that follows from its journal, as JSON: status, state, context, output, error, history, children, timers, counters
 * and marks of links, remembered message ids, systemIds, parent, principal, machine, and what a terminal record answers with.
 */
export function journaledState(record: ActorRecord): Readonly<Record<string, unknown>> {
  const { outbox: _outbox, considered: _considered, inputHash: _inputHash, snapshot, ...rest } = record;
  const children = Object.fromEntries(
    Object.entries(snapshot.children).map(([id, entry]) => [id, withoutAttempt(entry)]),
  );
  return { ...rest, snapshot: { ...snapshot, children } };
}

function withoutAttempt({ attempt: _attempt, runner: _runner, ...entry }: ChildEntry): Omit<ChildEntry, "attempt"> {
  return entry;
}

/** `journaledState` as JSON, for a file that a later replay is compared with. */
export const journaledStateJson = (record: ActorRecord): unknown => plainView(journaledState(record));

/**
 * Where a stored record differs from what its journal leads to. `before` is what is stored, `after` what the replay found.
 * @param steps  of a complete replay up to the revision of `stored`, entries that it still has to send included
 */
export function compareWithStored(steps: readonly ReplayedStep[], stored: ActorRecord): readonly Difference[] {
  const end = steps.at(-1)?.record;
  if (end === undefined) return [{ path: "rev", before: stored.rev }];
  if (stored.tombstone !== undefined) return differences(endingOf(stored, stored), endingOf(end, stored));
  return [
    ...differences(journaledState(stored), journaledState(end)),
    ...stored.outbox.flatMap((effect) => differencesOfEffect(effect, steps)),
  ];
}

/** What is left of a record in the tombstone `left` of it. A large result was moved out of it. */
function endingOf(record: ActorRecord, left: ActorRecord): object {
  const { key, genesis, parent, principal, createdAtMs, machine, rev, status, snapshot } = record;
  const { value, output, error } = snapshot;
  const identity = { key, genesis, parent, principal, createdAtMs, machine, rev, status };
  return {
    ...identity,
    snapshot: {
      status: snapshot.status,
      value,
      ...("output" in left.snapshot && { output }),
      ...("error" in left.snapshot && { error }),
    },
  };
}

function differencesOfEffect(effect: Effect, steps: readonly ReplayedStep[]): readonly Difference[] {
  const rev = Number(effect.id.slice(0, effect.id.indexOf("#")));
  const decided = steps[rev - 1]?.record.outbox.find(({ id }) => id === effect.id);
  const path = `outbox[${JSON.stringify(effect.id)}]`;
  if (decided === undefined) return [{ path, before: plainView(effect) }];
  return differences(asDecided(effect), asDecided(decided), path);
}

/** Without what is added to an effect while it waits, who committed it, and what builds before this one did not write. */
function asDecided(effect: Effect): object {
  if (effect.kind === "journal") {
    const { machine: _machine, writer: _writer, starts: _starts, ...decided } = effect;
    return decided;
  }
  if (effect.kind === "action") {
    const { context: _context, ...decided } = effect;
    return decided;
  }
  if (effect.kind === "emit") {
    const { atMs: _atMs, ...decided } = effect;
    return decided;
  }
  return effect;
}
