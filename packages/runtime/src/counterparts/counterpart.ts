import type { Effect } from "@holdfast/protocol";

/** What is known of a child actor that has not settled. */
export type ChildState =
  /** Its record is there and not final, its start or its outcome is on the way, or nobody can tell now. */
  | { readonly kind: "alive" }
  | { readonly kind: "missing"; readonly why: string }
  /** Final, and its parent does not know. `settled`: what it can be told again. */
  | { readonly kind: "ended"; readonly status: string; readonly genesis: string; readonly settled: Effect | undefined }
  | { readonly kind: "setAside"; readonly why: string };

/** Something that an actor waits for, or that waits for it, and what is known of it. */
export type Counterpart =
  | { readonly kind: "child"; readonly childId: string; readonly childKey: string; readonly state: ChildState }
  | { readonly kind: "parent"; readonly parentKey: string; readonly isWaiting: boolean }
  | {
      readonly kind: "timer";
      readonly timer: string;
      readonly gen: string;
      readonly dueAtMs: number;
      readonly isHeld: boolean;
    }
  /** A job or a volatile host; `isRun`: some process runs it, or will. */
  | { readonly kind: "work"; readonly childId: string; readonly childKey: string; readonly isRun: boolean }
  | { readonly kind: "outbox"; readonly oldest: Effect; readonly effects: number; readonly isInMemory: boolean }
  /** Its author said that it may rest. */
  | { readonly kind: "rest" };

/** An actor that has not ended, or not told everybody, with all its counterparts. */
export interface WaitingActor {
  readonly key: string;
  readonly seq: number;
  readonly counterparts: readonly Counterpart[];
}
