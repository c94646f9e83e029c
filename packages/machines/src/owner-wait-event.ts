import { ExternalId, Principal } from "@holdfast/protocol";
import { z } from "zod";

// Set by the shell from the subject of the message; what a sender writes there is overwritten or dropped.
const principal = Principal.optional();

/** The two ways in which a person settles a question. */
export const OwnerWaitReply = z.discriminatedUnion("type", [
  z.object({ type: z.literal("answer"), answerId: ExternalId, value: z.json(), principal }),
  z.object({
    type: z.literal("decline"),
    answerId: ExternalId,
    reason: z.string().max(500).optional(),
    principal,
  }),
]);
export type OwnerWaitReply = Readonly<z.infer<typeof OwnerWaitReply>>;

/** What may be sent to an owner-wait from outside; the conversation that asked sends `cancel` as well. */
export const OwnerWaitEvent = z.discriminatedUnion("type", [
  ...OwnerWaitReply.options,
  z.object({ type: z.literal("cancel"), reason: z.string().max(500).optional(), principal }),
]);
export type OwnerWaitEvent = Readonly<z.infer<typeof OwnerWaitEvent>>;
