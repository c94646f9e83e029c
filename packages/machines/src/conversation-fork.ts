import { ActorKey, Genesis, type PlainEvent } from "@holdfast/protocol";
import { z } from "zod";

/** Forks one conversation remembers: as long as one of them lives, its journal stays. */
export const MAX_FORKS = 128;

/** The place in the life of another conversation that a fork begins at. Its messages up to there are read there, not copied. */
export const ForkPoint = z.object({
  conversation: ActorKey,
  genesis: Genesis,
  /** Last revision that the fork has in common with it. */
  rev: z.int().min(1),
  /** Nothing of the agent's answered the last message there: `run` lets the fork go on from it. */
  isUnanswered: z.boolean().default(false),
});
export type ForkPoint = Readonly<z.infer<typeof ForkPoint>>;

const Start = z.looseObject({ type: z.literal("xstate.init"), input: z.looseObject({ fork: ForkPoint }) });

/**
 * What a conversation was forked from; undefined for one that begins by itself.
 *
 * @param events  the applied events of its journal, from the first
 */
export function forkPointOf(events: readonly PlainEvent[]): ForkPoint | undefined {
  return Start.safeParse(events[0]).data?.input.fork;
}
