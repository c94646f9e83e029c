import { incarnationOf, type ActorJournal, type CaseFile, type Judge, type Objection } from "./case-file.ts";
import type { CheckedActor, CheckedRecord } from "./check-evidence.ts";

/**
 * No outcome of a child was applied twice, and no actor that ended is still waited for by its parent.
 * An outcome that is nowhere applied is no contradiction when the parent ended first, or let go of the child: then nobody waits for it.
 */
export const judgeDelegations: Judge = (file) => {
  const objections: Objection[] = [];
  for (const journal of file.journals.values()) objections.push(...settledTwice(journal));
  for (const actor of file.actors.values()) objections.push(...ofChild(actor, file));
  return objections;
};

/** Child keys whose outcome an actor applied, in order. The id of every outcome is `<child key>:settled`. */
export const settledKeys = ({ entries }: ActorJournal): readonly { readonly key: string; readonly rev: number }[] =>
  entries.flatMap(({ cause, rev }) =>
    cause.kind === "settled" ? [{ key: cause.id.replace(/:settled.*$/, ""), rev }] : [],
  );

function settledTwice(journal: ActorJournal): readonly Objection[] {
  const seen = new Map<string, number>();
  return settledKeys(journal).flatMap(({ key, rev }): Objection[] => {
    const before = seen.get(key);
    seen.set(key, rev);
    if (before === undefined) return [];
    const expected = `the outcome of ${key} applied once`;
    return [{ code: "settled-twice", key: journal.key, at: rev, expected, found: `already at ${before}` }];
  });
}

function ofChild({ record }: CheckedActor, { actors, journals, isRetired }: CaseFile): readonly Objection[] {
  const { parent: link } = record;
  if (link === undefined) return [];
  const parent = actors.get(link.key)?.record;
  if (isRetired && parent === undefined && record.status !== "active" && record.status !== "closing") return [];
  if (parent === undefined || parent.genesis !== link.genesis) {
    return [{ code: "no-parent", key: record.key, expected: `record of ${link.key}^${link.genesis}`, found: "none" }];
  }
  const journal = journals.get(incarnationOf(link));
  const applied = journal === undefined ? [] : settledKeys(journal).filter(({ key }) => key === record.key);
  const rev = applied[0]?.rev;
  if (rev !== undefined && !hasOutcome(record)) {
    const found = `its parent applied an outcome at ${rev}`;
    return [{ code: "settled-unended", key: record.key, at: rev, expected: `nothing: it is ${record.status}`, found }];
  }
  if (rev !== undefined || !hasOutcome(record) || !waitsFor(parent, record.key)) return [];
  return [
    { code: "unsettled", key: record.key, expected: `its outcome applied by ${parent.key}`, found: "it still waits" },
  ];
}

/** Only these two tell their parent; one that was stopped was stopped by it. */
const hasOutcome = ({ status }: CheckedRecord): boolean => status === "done" || status === "error";

const waitsFor = ({ snapshot }: CheckedRecord, childKey: string): boolean =>
  Object.values(snapshot.children).some(({ key, status }) => key === childKey && status === "active");
