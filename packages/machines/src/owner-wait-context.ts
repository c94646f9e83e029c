import { WaitStatus } from "@holdfast/protocol";
import { z } from "zod";
import { OwnerWaitInput } from "./owner-wait-input.ts";

/** What an owner-wait keeps: the question, where it stands, and the reply that settled it. */
export const OwnerWaitContext = z.intersection(
  OwnerWaitInput,
  z.object({
    waitId: z.string(),
    status: WaitStatus,
    /** The answer or decline that was taken. */
    answerId: z.string().optional(),
    answer: z.json().optional(),
    by: z.enum(["owner", "default"]).optional(),
    principal: z.string().optional(),
    /** Why there is no answer. */
    endReason: z.string().optional(),
  }),
);
export type OwnerWaitContext = Readonly<z.infer<typeof OwnerWaitContext>>;
