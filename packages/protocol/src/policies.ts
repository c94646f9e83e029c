import { z } from "zod";

/**
 * What happens to a job whose runner died:
 * `idempotent` runs again; `dedupeKey` runs again under its key; `unsafe` is ambiguous once its started mark is stored, and is asked of a person.
 */
export const CrashPolicy = z.enum(["idempotent", "dedupeKey", "unsafe"]);
export type CrashPolicy = z.infer<typeof CrashPolicy>;

/**
 * What happens to an actor with work whose node ended without having left: `resume`, the next owner takes it up; `hold`, nothing of it runs
 * until an operator says so.
 */
export const AfterCrash = z.enum(["resume", "hold"]);
export type AfterCrash = z.infer<typeof AfterCrash>;

/** What a closing parent does with a child that has not settled. */
export const ClosePolicy = z.enum(["cancel", "await", "detach"]);
export type ClosePolicy = z.infer<typeof ClosePolicy>;

/** Tag of states in which an actor may rest for ever without a counterpart that wakes it. */
export const IDLE_TAG = "idle";
