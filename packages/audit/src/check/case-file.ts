import type { CheckedActor, CheckEvidence } from "./check-evidence.ts";
import { CheckedEntry } from "./journal-message.ts";
import type { Claim, Finding } from "./verdict.ts";

/** Every macrostep of one incarnation of an actor, each revision once, in order. */
export interface ActorJournal {
  readonly key: string;
  readonly genesis: string;
  readonly entries: readonly CheckedEntry[];
  /** Revisions that were stored with two contents. */
  readonly contradicted: readonly number[];
  /** Entries that were stored again with the same content. */
  readonly repeated: number;
}

/** The evidence, sorted for the judges. */
export interface CaseFile {
  readonly evidence: CheckEvidence;
  /** By key. */
  readonly actors: ReadonlyMap<string, CheckedActor>;
  /** By `<key>^<genesis>`. Entries that still wait in the outbox of their record are part of it. */
  readonly journals: ReadonlyMap<string, ActorJournal>;
  /** Ended actors may be gone, with their journals. */
  readonly isRetired: boolean;
}

/** What a judge says of one contradiction; the claim is the judge's. */
export type Objection = Omit<Finding, "claim">;
export type Judge = (file: CaseFile) => readonly Objection[];

export const incarnationOf = ({ key, genesis }: { readonly key: string; readonly genesis: string }): string =>
  `${key}^${genesis}`;

export const findingsOf = (claim: Claim, objections: readonly Objection[]): readonly Finding[] =>
  objections.map((objection) => ({ claim, ...objection }));

export function openCase(evidence: CheckEvidence, isRetired: boolean): CaseFile {
  const actors = new Map(evidence.actors.map((actor) => [actor.record.key, actor]));
  const byActor = new Map<string, CheckedEntry[]>();
  const add = (entry: CheckedEntry): void => {
    const incarnation = incarnationOf(entry);
    const known = byActor.get(incarnation);
    if (known === undefined) byActor.set(incarnation, [entry]);
    else known.push(entry);
  };
  for (const { entries } of evidence.journal) entries.forEach(add);
  for (const actor of actors.values()) unsentEntries(actor).forEach(add);
  const journals = new Map([...byActor].map(([incarnation, entries]) => [incarnation, ordered(entries)]));
  return { evidence, actors, journals, isRetired };
}

/** Journal entries that a record holds and no stream may have yet. */
function unsentEntries({ record: { key, genesis, outbox } }: CheckedActor): readonly CheckedEntry[] {
  return outbox
    .filter(({ kind }) => kind === "journal")
    .map((effect) => CheckedEntry.parse({ ...effect, key, genesis }));
}

function ordered(entries: readonly CheckedEntry[]): ActorJournal {
  const byRev = new Map<number, CheckedEntry>();
  const contradicted = new Set<number>();
  let repeated = 0;
  for (const entry of entries) {
    const known = byRev.get(entry.rev);
    if (known === undefined) byRev.set(entry.rev, entry);
    else if (contentOf(known) === contentOf(entry)) repeated += 1;
    else contradicted.add(entry.rev);
  }
  const { key = "", genesis = "" } = entries[0] ?? {};
  const sorted = [...byRev.values()].toSorted((one, other) => one.rev - other.rev);
  return { key, genesis, entries: sorted, contradicted: [...contradicted], repeated };
}

/** What a revision decided. Who sent the entry does not belong to it: a successor sends what its predecessor could not. */
function contentOf({ prevRev, event, cause, sender, from, to, status, atMs, writer }: CheckedEntry): string {
  return plainText([prevRev, event, cause, sender, from, to, status, atMs, writer]);
}

/** Text that is the same for equal plain values, whatever the order of their keys. */
export function plainText(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === "bigint") return `${inner}n`;
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
