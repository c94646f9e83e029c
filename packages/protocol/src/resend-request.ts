import { z } from "zod";
import { ActorKey, Genesis } from "./ids.ts";

/** Type of the event in which a receiver asks the sender of a link for messages that have not arrived. Reserved: no machine sees it. */
export const RESEND_EVENT = "xstate.link.resend";

/** What a receiver asks the sender of a link for. Travels as a plain send without a counter, from node to node. */
export const ResendRequest = z.object({
  type: z.literal(RESEND_EVENT),
  /** Who asks. */
  link: z.object({ key: ActorKey, genesis: Genesis }),
  /** Counters of the first and the last message that is missing. */
  first: z.number().int().min(1),
  last: z.number().int().min(1),
  /** What was sent before was meant for a former actor of this key, unless it names this one; broker time, Unix ms. */
  sinceMs: z.number(),
});
export type ResendRequest = z.infer<typeof ResendRequest>;
