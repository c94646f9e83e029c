import { incarnationOf, plainText, type ActorJournal, type Judge, type Objection } from "./case-file.ts";
import type { CheckedRecord } from "./check-evidence.ts";

/** Every revision of every record is one entry, one content, and begins in the state where the last one ended. */
export const judgeJournals: Judge = ({ actors, journals, evidence, isRetired }) => {
  const objections: Objection[] = evidence.unreadable.map(({ where, why }) => ({
    code: "unreadable",
    key: where,
    expected: "a value that can be read",
    found: why,
  }));
  for (const journal of journals.values()) {
    const record = actors.get(journal.key)?.record;
    objections.push(...contradictions(journal), ...steps(journal));
    const isGone = isRetired && record === undefined && hasEnded(journal);
    if (isGone) continue;
    if (record === undefined) objections.push(about(journal, "no-record", "a record", "none", journal.entries.length));
    else if (record.genesis === journal.genesis) objections.push(...tail(journal, record));
  }
  for (const { record } of actors.values()) {
    if (journals.has(incarnationOf(record))) continue;
    objections.push({ code: "no-journal", key: record.key, expected: `revisions 1 to ${record.rev}`, found: "none" });
  }
  for (const { stream, seq, key, entries } of evidence.journal) {
    const stranger = entries.find((entry) => entry.key !== key);
    if (stranger === undefined) continue;
    objections.push({
      code: "wrong-subject",
      key,
      at: seq,
      expected: `entries of ${key} in ${stream}`,
      found: stranger.key,
    });
  }
  return objections;
};

const about = ({ key }: ActorJournal, code: string, expected: string, found: string, at: number): Objection => ({
  code,
  key,
  at,
  expected,
  found,
});

/** A record goes before its journal. */
const hasEnded = ({ entries }: ActorJournal): boolean => /^(done|error|stopped)$/.test(entries.at(-1)?.status ?? "");

const contradictions = (journal: ActorJournal): readonly Objection[] =>
  journal.contradicted.map((rev) => about(journal, "contradiction", "one content of a revision", "two", rev));

function steps(journal: ActorJournal): readonly Objection[] {
  const objections: Objection[] = [];
  let last: ActorJournal["entries"][number] | undefined;
  for (const entry of journal.entries) {
    const { rev, prevRev, cause, from } = entry;
    const expectedRev = (last?.rev ?? 0) + 1;
    if (rev !== expectedRev) objections.push(about(journal, "gap", `revision ${expectedRev}`, `revision ${rev}`, rev));
    else if (prevRev !== rev - 1)
      objections.push(about(journal, "previous", `after ${rev - 1}`, `after ${prevRev}`, rev));
    else if (last !== undefined && plainText(last.to) !== plainText(from))
      objections.push(about(journal, "state-jump", `from ${plainText(last.to)}`, `from ${plainText(from)}`, rev));
    if ((rev === 1) !== (cause.kind === "start"))
      objections.push(about(journal, "start", rev === 1 ? "a start" : "one start, the first entry", cause.kind, rev));
    last = entry;
  }
  return objections;
}

/** The record and the last entry are of one decision. */
function tail(journal: ActorJournal, { rev, status, snapshot }: CheckedRecord): readonly Objection[] {
  const last = journal.entries.at(-1);
  if (last === undefined) return [];
  if (last.rev < rev)
    return [about(journal, "short", `revision ${rev}, as the record`, `${last.rev} is the last`, rev)];
  if (last.rev > rev)
    return [about(journal, "ahead", `revision ${rev}, as the record`, `${last.rev} is the last`, last.rev)];
  if (last.status !== status) return [about(journal, "status", `status ${status}, as the record`, last.status, rev)];
  if (plainText(last.to) === plainText(snapshot.value)) return [];
  return [about(journal, "state", `${plainText(snapshot.value)}, as the record`, plainText(last.to), rev)];
}
