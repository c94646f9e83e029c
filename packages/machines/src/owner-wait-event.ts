import { ExternalId, Principal } from "@holdfast/protocol";
import { z } from "zod";
import { Assignee, Role, WaitAction } from "./owner-wait-input.ts";

// Set by the shell from the subject of the message; what a sender writes there is overwritten or dropped.
const principal = Principal.optional();
const reason = z.string().max(500).optional();

/** The two ways in which a person settles a question. */
export const OwnerWaitReply = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("answer"),
    answerId: ExternalId,
    /** One of the actions of the question; absent: `respond`. `accept` and `reject` have no value. */
    action: WaitAction.optional(),
    value: z.json().optional(),
    reason,
    principal,
  }),
  z.object({ type: z.literal("decline"), answerId: ExternalId, reason, principal }),
]);
export type OwnerWaitReply = Readonly<z.infer<typeof OwnerWaitReply>>;

/** What may be sent to an owner-wait from outside; the conversation that asked sends `cancel` as well. */
export const OwnerWaitEvent = z.discriminatedUnion("type", [
  ...OwnerWaitReply.options,
  /** Takes a reply of one's own back, as long as whoever asked has not begun to take it in. */
  z.object({ type: z.literal("revoke"), answerId: ExternalId, principal }),
  z.object({ type: z.literal("cancel"), reason, principal }),
  /** Asks somebody else instead; of several approvers the sender, or `from`. */
  z.object({
    type: z.literal("reassign"),
    to: z.union([z.strictObject({ assignee: Assignee }), z.strictObject({ role: Role })]),
    from: Assignee.optional(),
    principal,
  }),
]);
export type OwnerWaitEvent = Readonly<z.infer<typeof OwnerWaitEvent>>;

/** What an owner-wait is told by the one who asked. Never accepted from outside. */
export type FromAskerEvent =
  /** Everything else of the step has its result: an answer may be taken in. */
  | { readonly type: "awaited" }
  /** The transition that took the outcome in is stored. */
  | { readonly type: "consumed" };

/** Everything an owner-wait handles. */
export type OwnerWaitMachineEvent =
  | OwnerWaitEvent
  | FromAskerEvent
  /** Timers of its own. */
  | { readonly type: "expiryDue" }
  | { readonly type: "reminderDue" }
  | { readonly type: "revocationOver" };

/** What an owner-wait tells the one who asked, when that says itself that it has taken the outcome in. Never accepted from outside. */
export interface WaitSettledEvent {
  readonly type: "waitSettled";
  readonly childId: string;
  /** An `OwnerWaitOutput`. */
  readonly output: unknown;
}
