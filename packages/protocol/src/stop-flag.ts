import { z } from "zod";

/** Key of the stop flag in the fleet bucket. */
export const PANIC_KEY = "flag.panic";

/**
 * Stops the whole fleet, or lifts that; key `flag.panic` of the fleet bucket. JSON. Its revision is the sequence under which it is stored:
 * whoever sees another one than before knows that the fleet was stopped, also when it was cleared since.
 */
export const PanicFlag = z.object({
  v: z.literal(1),
  state: z.enum(["raised", "cleared"]),
  /** Principal token of who raised it, as they say; who may write it is decided by NATS permissions. */
  by: z.string().max(80),
  reason: z.string().max(400),
  clearedBy: z.string().max(80).optional(),
  /** Random token of the write attempt. */
  token: z.string(),
});
export type PanicFlag = z.infer<typeof PanicFlag>;

/** What is known of the stop flag of a namespace. */
export interface PanicState {
  readonly isRaised: boolean;
  /** Sequence of the flag; 0 when there never was one. */
  readonly revision: number;
  readonly by: string;
  readonly reason: string;
}

export const NEVER_RAISED: PanicState = { isRaised: false, revision: 0, by: "", reason: "" };

/**
 * Reads a stored flag. One that makes no sense counts as raised: nothing runs on a guess.
 * @param value  its JSON, parsed; undefined when it is none
 */
export function parsePanic(value: unknown, revision: number): PanicState {
  const flag = PanicFlag.safeParse(value).data;
  if (flag === undefined) return { isRaised: true, revision, by: "", reason: "the stop flag cannot be read" };
  return { isRaised: flag.state === "raised", revision, by: flag.by, reason: flag.reason };
}
