import { assertSameFact, claimKeyOf, type FactPayload, type RunnerFact } from "../state/fact-claim.ts";

/** Where a host keeps facts. `create` is one step: of two callers with one key one creates, and both see what was created. */
export interface FactStore {
  create(
    key: string,
    fact: RunnerFact,
  ): Promise<{ readonly kind: "created" } | { readonly kind: "exists"; readonly payload: FactPayload }>;
}

/**
 * Stores a fact once. Whoever comes again with the same one finds it stored.
 *
 * @throws RunnerFault HF-9003 when another content is stored under its claim; whatever the store throws
 */
export async function claimFact(store: FactStore, fact: RunnerFact): Promise<"created" | "exists"> {
  const outcome = await store.create(claimKeyOf(fact), fact);
  if (outcome.kind === "exists") assertSameFact(fact, outcome.payload);
  return outcome.kind;
}
