import type {
  ActorKey,
  ActorRecord,
  BlobFields,
  Effect,
  Genesis,
  Incarnation,
  ParentLink,
  PartitionScheme,
  PlainEvent,
  Principal,
} from "@holdfast/protocol";
import type { KeepOutside } from "./kept-outside.ts";
import type { TextHash } from "./remembered-ids.ts";

/** First message of an actor: creates its record. */
export interface StartMessage {
  readonly kind: "start";
  readonly id: string;
  readonly key: ActorKey;
  readonly genesis: Genesis;
  readonly parent?: ParentLink;
  readonly input?: unknown;
  readonly principal: Principal;
  /** Generation of the inbox stream that counted the message. */
  readonly generation: string;
}

/** An event from outside, from another actor, or from a volatile host. */
export interface EventMessage {
  readonly kind: "event";
  readonly id: string;
  readonly event: PlainEvent;
  /** Sender and its dense counter; only of plain sends between actors. Not looked at when `external`. */
  readonly from?: { readonly key: ActorKey; readonly genesis: Genesis; readonly n: number };
  /** Child key of the volatile host that sent it. */
  readonly fromHost?: string;
  readonly principal?: Principal;
  readonly toGenesis?: Genesis;
  /** Came on an outside subject. Never taken from a payload. */
  readonly external: boolean;
}

/** Outcome of a child: `xstate.done.actor.<childId>` or `xstate.error.actor.<childId>`. */
export interface SettledMessage {
  readonly kind: "settled";
  readonly id: string;
  readonly childId: string;
  readonly childKey: string;
  readonly event: PlainEvent;
  readonly toGenesis: Genesis;
  /** Of a job, unless an older build ran it. */
  readonly ran?: { readonly attempt: number; readonly runner: Incarnation };
}

export interface TimerMessage {
  readonly kind: "timer";
  readonly timer: string;
  readonly gen: string;
}

export interface StopMessage {
  readonly kind: "stop";
  readonly id: string;
}

export type StepMessage = StartMessage | EventMessage | SettledMessage | TimerMessage | StopMessage;

/** What a step may know of the world. */
export interface StepEnv {
  /** Broker time, Unix ms. */
  readonly nowMs: number;
  readonly scheme: PartitionScheme;
  /** Who will commit what comes of it, for the journal. */
  readonly writer?: { readonly incarnation: string; readonly epoch: number };
  /** Outbox entries not acknowledged yet, oldest first. Default: all of `record.outbox`. */
  readonly carriedOutbox?: readonly Effect[];
  /** What is too large for a record. Absent: everything stays in it. */
  readonly outside?: KeepOutside | undefined;
  /** Default: the pure one. The system's own is five times faster, and every message from outside asks for it. */
  readonly textHash?: TextHash | undefined;
  /** Defaults: the limits of protocol. */
  readonly hardLimits?: { readonly startsPerCommit?: number; readonly foreignLinks?: number };
}

export type DropReason =
  | "not-started"
  | "already-started"
  | "terminal"
  | "stale-timer"
  | "stale-child"
  | "duplicate"
  | "gap"
  | "other-incarnation"
  | "reserved-event"
  | "too-many-links"
  /** Never returned by `step`, which does not know sizes: for the caller of `passOver`. */
  | "record-too-large"
  /** Neither: an operator wants it passed over. */
  | "skipped";

export type StepResult =
  /** Must be committed before anything of it leaves. */
  | {
      readonly kind: "stepped";
      readonly record: ActorRecord;
      readonly local: readonly LocalEffect[];
      /** The machine threw this: the record says so, as in memory. A caller may leave the actor as it was instead. */
      readonly thrown?: unknown;
    }
  /** Changed nothing: `record` is the object handed in, nothing has to be stored. */
  | { readonly kind: "ignored"; readonly record: ActorRecord }
  | {
      readonly kind: "dropped";
      readonly reason: DropReason;
      /** Counters of the link; only with reason `gap`. */
      readonly gap?: { readonly expected: number; readonly got: number };
    };

/** What the node itself has to do after the commit. Not stored: `localEffectsOf(record)` derives what a restart needs. */
export type LocalEffect =
  | {
      readonly kind: "startJob" | "startHost";
      readonly childKey: string;
      readonly childId: string;
      readonly src: string;
      readonly input: unknown;
      /** The input is kept outside, and has to be fetched. */
      readonly blobs?: BlobFields;
    }
  | { readonly kind: "stopJob" | "stopHost"; readonly childKey: string }
  | { readonly kind: "tellHost"; readonly childKey: string; readonly event: PlainEvent }
  | { readonly kind: "schedule"; readonly timer: string; readonly gen: string; readonly dueAtMs: number }
  | { readonly kind: "cancel"; readonly timer: string };
