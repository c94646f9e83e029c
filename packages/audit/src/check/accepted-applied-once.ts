import type { CaseFile, Judge, Objection } from "./case-file.ts";
import type { CheckedEntry } from "./journal-message.ts";

/** Entries of one actor key by the id of the message that caused them, over all its incarnations. */
type Applications = ReadonlyMap<string, readonly CheckedEntry[]>;

/** What a client was told is what the journal says; no message of anybody is two macrosteps; messages between two actors are dense. */
export const judgeCommands: Judge = (file) => {
  const applied = applicationsOf(file);
  return [...appliedTwice(applied), ...told(file, applied), ...links(file)];
};

const idOf = (key: string, messageId: string): string => `${key} ${messageId}`;

function applicationsOf({ journals }: CaseFile): Applications {
  const found = new Map<string, CheckedEntry[]>();
  for (const { key, entries } of journals.values()) {
    for (const entry of entries) {
      const { kind, id } = entry.cause;
      if ((kind !== "event" && kind !== "start") || entry.principal === undefined) continue; // hosts and actors have no id of their own for every message
      const command = idOf(key, id);
      found.set(command, [...(found.get(command) ?? []), entry]);
    }
  }
  return found;
}

function appliedTwice(applied: Applications): readonly Objection[] {
  return [...applied.values()].flatMap(([first, ...again]): Objection[] => {
    const second = again[0];
    if (first === undefined || second === undefined) return [];
    const found = `${again.length + 1} times, first at ${first.rev}`;
    const expected = `message ${first.cause.id} applied once`;
    return [{ code: "applied-twice", key: first.key, at: second.rev, expected, found }];
  });
}

function told({ evidence, actors, journals, isRetired }: CaseFile, applied: Applications): readonly Objection[] {
  const lost = new Set<string>();
  const known = new Set([...actors.keys(), ...[...journals.values()].map(({ key }) => key)]);
  return evidence.accepted.flatMap((command): Objection[] => {
    const { key, messageId, outcome, rev, mayBeIgnored } = command;
    const id = idOf(key, messageId);
    const revs = (applied.get(id) ?? []).map((entry) => entry.rev);
    const mustBe = outcome === "applied" || (outcome === "accepted" && mayBeIgnored !== true);
    if (isRetired && !known.has(key)) return [];
    if (mustBe && revs.length === 0) {
      if (lost.has(id)) return []; // once, however often it was answered
      lost.add(id);
      return [{ code: "lost", key, expected: `message ${messageId}, ${outcome}, in the journal`, found: "nowhere" }];
    }
    if (outcome !== "applied" || rev === undefined || revs.includes(rev)) return [];
    const expected = `message ${messageId} at revision ${rev}, as its sender was told`;
    return [{ code: "other-revision", key, at: rev, expected, found: `at ${revs.join(", ")}` }];
  });
}

/** Counters of every link between two incarnations: 1, 2, 3… */
function links({ journals }: CaseFile): readonly Objection[] {
  const objections: Objection[] = [];
  for (const { key, entries } of journals.values()) {
    const counters = new Map<string, number>();
    for (const { sender, rev } of entries) {
      if (sender === undefined) continue;
      const link = `${sender.key}^${sender.genesis}`;
      const expected = (counters.get(link) ?? 0) + 1;
      if (sender.n !== expected)
        objections.push({
          code: sender.n < expected ? "applied-twice" : "link-gap",
          key,
          at: rev,
          expected: `message ${expected} of ${link}`,
          found: `message ${sender.n}`,
        });
      counters.set(link, sender.n);
    }
  }
  return objections;
}
