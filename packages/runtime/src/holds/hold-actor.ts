import type { Quarantine } from "../quarantine/quarantine.ts";

/** Nothing of a held actor runs until an operator lets it go on. Its entry outlives its node. @returns false when it could not be stored */
export function holdActor(quarantine: Quarantine, key: string, reason: string): Promise<boolean> {
  const attempts = [quarantine.attempt("HF-3106", reason)];
  return quarantine.setActorAside(key, { code: "HF-3106", reason, state: "parked", attempts });
}
