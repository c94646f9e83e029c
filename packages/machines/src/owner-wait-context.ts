import { WaitStatus } from "@holdfast/protocol";
import { z } from "zod";
import { OwnerWaitInput, WaitAction } from "./owner-wait-input.ts";
import { Vote } from "./owner-wait-quorum.ts";

/** What an owner-wait keeps: the question, where it stands, and the replies to it. */
export const OwnerWaitContext = z.intersection(
  OwnerWaitInput,
  z.object({
    waitId: z.string(),
    status: WaitStatus,
    /** How it was settled; absent while it is open, and in what earlier builds stored. */
    outcome: WaitStatus.exclude(["open", "consumed"]).optional(),
    /** Replies that count, one per person, in the order in which they came. */
    votes: z.array(Vote).optional(),
    /** `<principal> <answer id>` of replies that were taken back. */
    revoked: z.array(z.string()).optional(),
    /** The reply that decided. */
    answerId: z.string().optional(),
    answer: z.json().optional(),
    action: WaitAction.optional(),
    by: z.enum(["owner", "default"]).optional(),
    principal: z.string().optional(),
    /** Those who agreed, where it took several. */
    approvals: z.array(z.string()).optional(),
    /** Why there is no answer. */
    endReason: z.string().optional(),
    /** The one who asked waits for nothing else any more. */
    isAwaited: z.boolean().optional(),
    /** The time in which a reply may be taken back runs. */
    isRevocable: z.boolean().optional(),
    /** Steps of its escalation that were taken. */
    escalated: z.number().optional(),
    /** Reminders that were announced since it was last handed to somebody. */
    reminders: z.number().optional(),
    /** Its time was over while a reply stood that may still be taken back. */
    isOverdue: z.boolean().optional(),
    /** The one who asked was told how it was settled, and may take that in at any time. */
    isOffered: z.boolean().optional(),
  }),
);
export type OwnerWaitContext = Readonly<z.infer<typeof OwnerWaitContext>>;
