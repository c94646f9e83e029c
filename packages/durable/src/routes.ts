import { ActorKey, Genesis, type ActorRecord, type ChildEntry } from "@holdfast/protocol";
import { ActorAddress, keyOf } from "./actor-address.ts";
import type { Spawned } from "./step-scope.ts";
import { SYSTEM_KEY_PREFIX } from "./step-system.ts";

/** Where an event for a reference goes. */
export type Route =
  | {
      readonly kind: "actor";
      readonly key: ActorKey;
      readonly genesis: Genesis | undefined;
      readonly relation: Relation;
    }
  /** A job or host of this actor: it lives in the process, not behind an inbox. */
  | { readonly kind: "host"; readonly key: string }
  /** Known by its systemId only, and not a child of this actor. */
  | { readonly kind: "system"; readonly systemId: string }
  | { readonly kind: "nowhere"; readonly reason: string };

export type Relation = "self" | "parent" | "child" | "foreign";

/** What routing needs to know of an actor within one step: itself, its parent, its children before and during the step. */
export interface Surroundings {
  readonly record: Pick<ActorRecord, "key" | "genesis" | "parent">;
  readonly before: Readonly<Record<string, ChildEntry>>;
  readonly spawned: readonly Spawned[];
}

/** @param reference  an address, a child that XState made in this step, or anything that user code took for one */
export function routeTo(reference: unknown, { record, before, spawned }: Surroundings): Route {
  const key = keyOf(reference);
  if (key === undefined) return { kind: "nowhere", reason: "the target is not an actor" };
  if (key.startsWith(SYSTEM_KEY_PREFIX)) {
    const systemId = key.slice(SYSTEM_KEY_PREFIX.length);
    const owned =
      spawned.findLast((child) => child.systemId === systemId) ??
      Object.values(before).find((child) => child.systemId === systemId && child.status === "active");
    return owned === undefined ? { kind: "system", systemId } : childRoute(owned.kind, owned.key);
  }
  if (key === record.key) return { kind: "actor", key, genesis: record.genesis, relation: "self" };
  const { parent } = record;
  if (parent !== undefined && key === parent.key) {
    return { kind: "actor", key, genesis: parent.genesis, relation: "parent" };
  }
  for (const child of spawned) if (child.key === key) return childRoute(child.kind, key);
  for (const id in before) {
    const child = before[id];
    if (child?.key === key) return childRoute(child.kind, key);
  }
  const genesis = reference instanceof ActorAddress ? reference.genesis : undefined;
  if (!ActorKey.safeParse(key).success) return { kind: "nowhere", reason: "the target is no longer there" };
  if (genesis !== undefined && !Genesis.safeParse(genesis).success) {
    return { kind: "nowhere", reason: "the target's genesis is not valid" };
  }
  return { kind: "actor", key, genesis, relation: "foreign" };
}

function childRoute(kind: ChildEntry["kind"], key: string): Route {
  // A child's key already names one incarnation of it, so no genesis is needed.
  return kind === "actor" ? { kind: "actor", key, genesis: undefined, relation: "child" } : { kind: "host", key };
}
