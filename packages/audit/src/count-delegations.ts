import { z } from "zod";
import { delegationsOf } from "./decided-delegations.ts";
import type { Evidence } from "./evidence.ts";

export const DelegationFigures = z.object({
  /** Tasks and follow-ups that calls of a delegating tool asked for, in replies that conversations applied. */
  decided: z.int(),
  /** Task actors that exist or existed. */
  created: z.int(),
  /** Task actors that ended. */
  settled: z.int(),
  /** Results that conversations applied: of tasks that ended, and of runs of tasks that can be continued. */
  applied: z.int(),
  /** Results applied twice for one call, tasks created twice for one call, contradicting journal entries. */
  duplicates: z.int(),
  /** Decided, and neither applied nor still on the way to be. */
  lost: z.int(),
  details: z.object({
    appliedTwice: z.array(z.string()),
    createdTwice: z.array(z.string()),
    contradictions: z.array(z.string()),
  }),
});
export type DelegationFigures = z.infer<typeof DelegationFigures>;

export interface CountOptions {
  /** Names of tools that delegate. */
  readonly delegatingTools: readonly string[];
  /** Only conversations under this root, by key; default all. */
  readonly root?: string;
}

/** Counts the delegations of a namespace from its evidence alone. Pure. */
export function countDelegations(evidence: Evidence, options: CountOptions): DelegationFigures {
  const inScope = scopeOf(evidence, options.root);
  let decided = 0;
  let lost = 0;
  let reported = 0;
  const createdFor = new Map<string, number>();
  const appliedFor = new Map<string, number>();
  let settled = 0;
  const taskChildIds = new Map<string, Set<string>>();

  for (const actor of evidence.actors) {
    if (actor.type !== "task" || actor.parent === undefined || !inScope(actor.key)) continue;
    const call = `${actor.parent.key}^${actor.parent.genesis}/${actor.parent.childId}`;
    createdFor.set(call, (createdFor.get(call) ?? 0) + 1);
    const parent = `${actor.parent.key}^${actor.parent.genesis}`;
    taskChildIds.set(parent, (taskChildIds.get(parent) ?? new Set()).add(actor.parent.childId));
    if (actor.status === "done" || actor.status === "error") settled += 1;
  }
  for (const [actor, steps] of evidence.journals) {
    const key = actor.slice(0, actor.indexOf("^"));
    if (key.split(".")[1] !== "conversation" || !inScope(key)) continue;
    const delegations = delegationsOf(steps, options.delegatingTools);
    decided += delegations.decided;
    lost += delegations.decided - delegations.applied;
    reported += delegations.applied;
    for (const step of steps) {
      const childId = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(step.event.type)?.[1];
      if (childId === undefined || taskChildIds.get(actor)?.has(childId) !== true) continue;
      appliedFor.set(`${actor}/${childId}`, (appliedFor.get(`${actor}/${childId}`) ?? 0) + 1);
    }
  }
  const appliedTwice = [...appliedFor].filter(([, times]) => times > 1).map(([call]) => call);
  const createdTwice = [...createdFor].filter(([, times]) => times > 1).map(([call]) => call);
  const again = [...appliedFor.values()].reduce((sum, times) => sum + times - 1, 0);
  return {
    decided,
    created: [...createdFor.values()].reduce((sum, times) => sum + times, 0),
    settled,
    applied: reported + again,
    duplicates: appliedTwice.length + createdTwice.length + evidence.contradictions.length,
    lost,
    details: { appliedTwice, createdTwice, contradictions: [...evidence.contradictions] },
  };
}

/** Whether an actor belongs to a root: itself, or one of its descendants. */
function scopeOf(evidence: Evidence, root: string | undefined): (key: string) => boolean {
  if (root === undefined) return () => true;
  const parents = new Map(evidence.actors.map((actor) => [actor.key, actor.parent?.key]));
  return (key) => {
    for (let at: string | undefined = key; at !== undefined; at = parents.get(at)) if (at === root) return true;
    return false;
  };
}
