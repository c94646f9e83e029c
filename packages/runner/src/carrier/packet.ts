import { z } from "zod";

const Count = z.int().min(0);

/**
 * One message of a carrier that may lose, and neither repeats nor reorders for long. `frame` counts from 1 in each direction; `beat` says how many frames
 * were sent, `taken` how many were taken by the other side's reader; `end` closes.
 */
export const Packet = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("frame"), n: z.int().min(1), frame: z.json() }),
  z.strictObject({ kind: z.literal("beat"), sent: Count, taken: Count }),
  z.strictObject({ kind: z.literal("end") }),
]);
export type Packet = z.infer<typeof Packet>;
