import type { Ancestor } from "@holdfast/protocol";

/** A stream as it is now: its generation, and the earlier ones whose sequences still mean something. */
export interface StreamIdentity {
  readonly generation: string;
  readonly lineage: readonly Ancestor[];
}

/**
 * A sequence that was counted by some generation, as the present one counts (F11).
 * @returns the sequence itself, at most the last one that a restored copy has of it; 0 when it means nothing any more
 */
export function inheritedSequence(stream: StreamIdentity, generation: string, seq: number): number {
  if (generation === stream.generation) return seq;
  const ancestor = stream.lineage.find((each) => each.generation === generation);
  return ancestor === undefined ? 0 : Math.min(seq, ancestor.upTo);
}
