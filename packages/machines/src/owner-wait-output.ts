import { z } from "zod";

/** How an owner-wait ended. `answer` and `by` exist when there is an answer, `reason` otherwise. */
export const OwnerWaitOutput = z.object({
  waitId: z.string(),
  status: z.enum(["answered", "declined", "expired", "cancelled"]),
  /** With action `accept`: true. With `edit`: all arguments, as they are to be. */
  answer: z.json().optional(),
  /** What was done about the question, where it said what may be. */
  action: z.enum(["accept", "edit", "respond", "reject"]).optional(),
  /** `default`: nobody answered in time and the question allowed to take its default. */
  by: z.enum(["owner", "default"]).optional(),
  /** `<kind>-<id>` of the one who answered or declined. */
  principal: z.string().optional(),
  /** Those who agreed, where it took several. */
  approvals: z.array(z.string()).optional(),
  reason: z.string().optional(),
});
export type OwnerWaitOutput = Readonly<z.infer<typeof OwnerWaitOutput>>;
