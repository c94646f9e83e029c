import { z } from "zod";
import { Incarnation } from "./incarnation.ts";
import { ActorKey } from "./ids.ts";
import { StuckAttempt } from "./stuck.ts";

/** What of an actor is tried: `message <mark>`, `timer <name>/<generation>`, `job <key>`, or the name of something else it does. */
const What = z.string().min(1).max(300);

/**
 * Something that a node tries alone because it may be what takes nodes down; key `trial.<node>.<nonce>` of the stuck bucket. JSON. It is
 * gone as soon as the node has survived it.
 */
export const Trial = z.object({ v: z.literal(1), node: Incarnation, key: ActorKey, what: What, atMs: z.number() });
export type Trial = z.infer<typeof Trial>;

/** Trials of one actor that its nodes did not survive; key `suspect.<actor key>` of the stuck bucket. JSON. */
export const Suspect = z.object({
  v: z.literal(1),
  key: ActorKey,
  /** What was tried → its attempts, oldest first. */
  trials: z.record(What, z.array(StuckAttempt).max(20)),
});
export type Suspect = z.infer<typeof Suspect>;
