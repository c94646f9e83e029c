import type { PlainEvent } from "@holdfast/protocol";
import type { CrashPoint } from "./toy-host.ts";

/** What one process is asked to do: take over the db, take one macrostep (or run jobs), hand the db back, end. */
export interface WorkerRequest {
  /** The db as text. */
  readonly db: string;
  readonly crashAt?: CrashPoint;
  readonly task:
    | { readonly kind: "create"; readonly type: string; readonly input: unknown }
    | { readonly kind: "send"; readonly type: string; readonly event: PlainEvent }
    | { readonly kind: "fire"; readonly endMs: number }
    | { readonly kind: "step" }
    | { readonly kind: "settle" };
}

export interface WorkerReply {
  readonly db: string;
  /** A timer was due (fire), a message was there (step), something was said (settle). */
  readonly moved: boolean;
}
