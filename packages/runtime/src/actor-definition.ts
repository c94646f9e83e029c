import type { AfterCrash, ClosePolicy, CrashPolicy, EventKind, PlainEvent } from "@holdfast/protocol";
import type { AnyActorLogic } from "xstate";

/** What a job may know and use while it runs. */
export interface JobContext {
  /** Idempotency key: the same for every attempt of this job, never used by another one. */
  readonly key: string;
  readonly actorKey: string;
  readonly genesis: string;
  /** Revision of the commit that decided the job; its journal entry is stored before the job starts. */
  readonly rev: number;
  /** 1 for the first attempt this fleet knows of. Counted durably only for `dedupeKey` and `unsafe`. */
  readonly attempt: number;
  readonly node: string;
  /** Aborts when the job is stopped, or when another node took the actor over. */
  readonly signal: AbortSignal;
}

export interface JobDefinition {
  readonly crashPolicy: CrashPolicy;
  /** Replaces the promise logic registered in the machine. Its result must be plain data. */
  readonly run?: (input: unknown, context: JobContext) => Promise<unknown>;
  /** Jobs of this source that one node runs at the same time; default 32. */
  readonly concurrency?: number;
  /** Who does the work, when several sources share a limit: `providerConcurrency` of the node's settings names it. */
  readonly provider?: string;
}

/** What actors of one type may take of one node; whatever is absent has the default of all types. */
export interface TypeLimits {
  /** Jobs of all its sources that run at the same time; default: no limit but those of the sources and of the node. */
  readonly jobs?: number;
  /** Messages, and their bytes, that one actor may have waiting in memory; the rest is fetched again. Default 64, 1 MiB. */
  readonly mailboxMessages?: number;
  readonly mailboxBytes?: number;
}

export interface PublicEvent {
  readonly kind: EventKind;
  readonly name: readonly string[];
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The part of a zod schema that is used. */
export interface Schema {
  safeParse(value: unknown): { readonly success: boolean; readonly error?: { readonly message: string } | undefined };
}

/** What became of an outside event that changed nothing. `duplicate`: it was applied before, for its sender a success. */
export type NoEffect =
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly reason: string;
      readonly facts?: Readonly<Record<string, string | number | boolean>>;
    }
  | { readonly kind: "duplicate" }
  | { readonly kind: "noEffect"; readonly reason: string };

export interface ActorIds {
  readonly key: string;
  readonly type: string;
  readonly id: string;
  readonly parentKey: string | undefined;
}

/** A source of a machine that is an actor of its own. */
export interface ChildActorDefinition {
  readonly type: string;
  /** Pool of that type; needed only when no node that serves it has been there yet. Default: where its first node put it, then `d`. */
  readonly pool?: string;
  readonly closePolicy?: ClosePolicy;
}

type ListFields = Readonly<Record<string, string | number | boolean>>;

/** What is to become of an actor's content once it has ended. */
export interface RetentionWish {
  /**
   * It was deleted: its content and its journal go a minute later instead of after `keepEndedMs`, and so do those of everything that it, and
   * what it started, ever started, whether that has ended before or ends later.
   */
  readonly erase?: boolean;
  /** Keys of actors that read its journal: record and journal stay whole as long as one of them has not become a tombstone. */
  readonly sharedWith?: readonly string[];
}

/** An ordinary XState v5 machine (or transition logic) and what the runtime must know besides. */
export interface ActorDefinition {
  readonly type: string;
  /** Node pool whose nodes can serve this type; default `d`. */
  readonly pool?: string;
  readonly machine: AnyActorLogic;
  /**
   * Versions of the machine that this build still runs, oldest first. While a live node lacks the new one, new actors begin in the newest that
   * all have, and actors go on in the version that wrote them; afterwards they move to the new one when they are loaded. Versions are compared
   * by the numbers in them.
   */
  readonly formerMachines?: readonly AnyActorLogic[];
  /** Sources in the machine that are actors with a record of their own. */
  readonly childActors?: Readonly<Record<string, ChildActorDefinition>>;
  /**
   * What a throw in a guard, an assign or another expression comes to. `setAside` (default): the actor stays as it was, and what made it
   * throw is taken out after `maxAttempts` tries, for an operator or another build. `fail`: what it means in memory, the actor ends with
   * status `error`. A throw in the initial state always means that.
   */
  readonly onThrow?: "setAside" | "fail";
  /** What happens to its actors with work when their node ends without having left; default `resume`. */
  readonly afterCrash?: AfterCrash;
  readonly jobs?: Readonly<Record<string, JobDefinition>>;
  readonly limits?: TypeLimits;
  /** What it may be started with from outside; anything when absent. Structurally a zod schema. */
  readonly input?: Schema;
  /** What may be sent to it from outside (`principal` included); anything when absent. */
  readonly outsideEvent?: Schema;
  /** Why an outside event changed nothing, for its sender. */
  readonly noEffect?: (event: PlainEvent, context: unknown, value: unknown) => NoEffect;
  /** Fields for lists and filters, stored in the clear: no content of messages. */
  readonly listFields?: (context: unknown, value: unknown) => ListFields;
  /**
   * What an ended actor still notes of an event from outside: its context with it, or undefined when that is nothing. Pure; its status, state and
   * output stay. Absent: an ended actor takes nothing.
   */
  readonly afterEnd?: (context: unknown, event: PlainEvent) => unknown;
  /** Asked once it has ended; absent: everything goes when its time is over. */
  readonly retention?: (context: unknown) => RetentionWish;
  /** What stays of its fields for lists when it goes with what started it; absent: none. */
  readonly erasedFields?: (fields: ListFields) => ListFields;
  /** Turns an emitted event into a public one; undefined keeps it private. */
  readonly publicEvent?: (emitted: PlainEvent, ids: ActorIds) => PublicEvent | undefined;
}

/** Declares an actor type. Exists for inference and for a place where the documentation hangs. */
export const defineActor = (definition: ActorDefinition): ActorDefinition => definition;
