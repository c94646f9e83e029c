import { z } from "zod";

/** What of a record matters for counting. */
export const AuditedActor = z.looseObject({
  key: z.string(),
  type: z.string(),
  id: z.string(),
  genesis: z.string(),
  rev: z.number(),
  status: z.string(),
  parent: z.looseObject({ key: z.string(), genesis: z.string(), childId: z.string() }).optional(),
  outbox: z.array(z.looseObject({ kind: z.string() })),
  snapshot: z.looseObject({
    value: z.unknown(),
    context: z.unknown(),
    output: z.unknown().optional(),
    children: z.record(
      z.string(),
      z.looseObject({ kind: z.string(), src: z.string(), key: z.string(), status: z.string() }),
    ),
  }),
});
export type AuditedActor = z.infer<typeof AuditedActor>;

/** What of a journal entry matters for counting. */
export const AuditedStep = z.looseObject({
  key: z.string(),
  genesis: z.string(),
  rev: z.number(),
  event: z.looseObject({ type: z.string() }),
  status: z.string(),
  node: z.string(),
  atMs: z.number(),
});
export type AuditedStep = z.infer<typeof AuditedStep>;

/** Everything stored that counts: current records, and every macrostep of every actor, each once, in order of revision. */
export interface Evidence {
  readonly actors: readonly AuditedActor[];
  /** `<key>^<genesis>` → steps. */
  readonly journals: ReadonlyMap<string, readonly AuditedStep[]>;
  /** Entries that said something else than an earlier entry of the same revision: never acceptable. */
  readonly contradictions: readonly string[];
}

/** Orders raw journal entries: the first of a revision counts, a later one must say the same. */
export function orderSteps(entries: Iterable<AuditedStep>): Pick<Evidence, "journals" | "contradictions"> {
  const byActor = new Map<string, Map<number, AuditedStep>>();
  const contradictions: string[] = [];
  for (const entry of entries) {
    const actor = `${entry.key}^${entry.genesis}`;
    const steps = byActor.get(actor) ?? new Map<number, AuditedStep>();
    byActor.set(actor, steps);
    const known = steps.get(entry.rev);
    if (known === undefined) steps.set(entry.rev, entry);
    else if (JSON.stringify(known.event) !== JSON.stringify(entry.event)) contradictions.push(`${actor}@${entry.rev}`);
  }
  const journals = new Map(
    [...byActor].map(([actor, steps]) => [actor, [...steps.values()].toSorted((a, b) => a.rev - b.rev)]),
  );
  return { journals, contradictions };
}
