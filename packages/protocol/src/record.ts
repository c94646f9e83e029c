import { z } from "zod";
import { BlobFields } from "./blob-ref.ts";
import { ActorId, ActorKey, ActorType, Genesis } from "./ids.ts";
import { Incarnation } from "./incarnation.ts";
import { Principal } from "./principal.ts";

/**
 * Any event of a machine as plain data. Its type may be long: the runtime's own carry child ids and state paths, and what was stored once
 * must be readable for ever. What comes from outside is limited where it comes in.
 */
export const PlainEvent = z.looseObject({ type: z.string().min(1) });
export type PlainEvent = z.infer<typeof PlainEvent>;

/** Life of a record. `closing`: final for its machine, but children with close policy `await` have not settled. */
export const RecordStatus = z.enum(["active", "closing", "done", "error", "stopped"]);
export type RecordStatus = z.infer<typeof RecordStatus>;

export const isTerminal = (status: RecordStatus): boolean =>
  status === "done" || status === "error" || status === "stopped";

/** A timer is data: original deadline in broker time, fires once, at once when overdue. */
export const TimerEntry = z.object({
  gen: z.string(),
  dueAtMs: z.number(),
  to: ActorKey,
  toGenesis: Genesis.optional(),
  event: PlainEvent,
});
export type TimerEntry = z.infer<typeof TimerEntry>;

/**
 * What a parent knows of a child. `actor`: a record of its own. `job`: one call of a promise, its key is the idempotency key.
 * `host`: a callback or observable, volatile, started again on another node.
 */
export const ChildEntry = z.object({
  kind: z.enum(["actor", "job", "host"]),
  src: z.string(),
  /** Actor key of an actor; `<parent key>/<id>` form never appears: jobs and hosts use the constant-length id of `childActorId`. */
  key: z.string(),
  status: z.enum(["active", "done", "error"]),
  systemId: z.string().optional(),
  sync: z.boolean().optional(),
  /** Input of a job or host, needed to run it again. Actors get theirs with the start message. */
  input: z.unknown().optional(),
  /** Its input, when that is kept outside; also of an actor, whose start names the same blob. */
  blobs: BlobFields.optional(),
  /** Last synchronised snapshot of an `onSnapshot` child. */
  lastSnapshot: z.unknown().optional(),
  output: z.unknown().optional(),
  error: z.unknown().optional(),
  /** Highest counter taken from this child's plain sends. */
  mark: z.number().optional(),
  /** Stored before attempt n of a job that must not run unnoticed. */
  attempt: z.number().optional(),
  /** Incarnation `<node>:<nonce>` of the runner of that attempt. */
  runner: z.string().optional(),
});
export type ChildEntry = z.infer<typeof ChildEntry>;

export const StoredSnapshot = z.object({
  status: z.enum(["active", "done", "error", "stopped"]),
  value: z.unknown(),
  context: z.unknown(),
  output: z.unknown().optional(),
  error: z.unknown().optional(),
  /** Output or error, when they are kept outside. */
  blobs: BlobFields.optional(),
  historyValue: z.record(z.string(), z.array(z.string())),
  children: z.record(z.string(), ChildEntry),
});
export type StoredSnapshot = z.infer<typeof StoredSnapshot>;

export const ParentLink = z.object({
  key: ActorKey,
  genesis: Genesis,
  childId: z.string(),
  sync: z.boolean(),
});
export type ParentLink = z.infer<typeof ParentLink>;

/**
 * What one macrostep was: everything that a replay needs and that the record before it does not say. The same in an outbox and in a journal.
 * The fields from `parent` to `writer` are absent in what builds wrote that could not replay.
 */
export const MACROSTEP = {
  rev: z.number(),
  prevRev: z.number(),
  /** What was applied, as it was applied. */
  event: PlainEvent,
  /** Fields of the event that are kept outside. */
  blobs: BlobFields.optional(),
  cause: z.object({
    kind: z.enum(["start", "event", "settled", "timer", "stop", "reconcile"]),
    id: z.string(),
  }),
  principal: Principal.optional(),
  from: z.unknown(),
  to: z.unknown(),
  status: RecordStatus,
  effects: z.array(z.string()),
  atMs: z.number(),
  /** Of a start: who waits for the outcome. */
  parent: ParentLink.optional(),
  /** Of a counted message: the actor it came from, and its counter. */
  sender: z.object({ key: ActorKey, genesis: Genesis, n: z.number() }).optional(),
  /** Of a message of a volatile host: its child key. */
  host: z.string().optional(),
  /** Why the machine was not shown the event. */
  passedOver: z.string().optional(),
  /** Of the outcome of a job: which attempt it is of, and the process that ran it. */
  ran: z.object({ attempt: z.number(), runner: Incarnation }).optional(),
  /** Children that this macrostep started. Their key is an actor key, or the idempotency key of a job. */
  starts: z.array(z.object({ childId: z.string(), key: z.string(), src: z.string() })).optional(),
  /** Machine that decided it, `<id>@<version>#<12 digits of its hash>`. In an outbox only when the record has another one by now. */
  machine: z.string().optional(),
  /** Who committed it, under which epoch of the partition's lease. */
  writer: z.object({ incarnation: Incarnation, epoch: z.number() }).optional(),
} as const;

const effectId = z.string().regex(/^[0-9]+#[0-9]+$/);
/** Fields kept outside: of a start or an action its own, of everything else those of its event. */
const blobs = BlobFields.optional();

/**
 * A decision that must leave the process. Stored in the record's outbox until its receiver's stream acknowledged it.
 * `id` is `<revision>#<index>`, unique within (key, genesis).
 */
export const Effect = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("start"),
    id: effectId,
    blobs,
    to: ActorKey,
    childId: z.string(),
    sync: z.boolean(),
    input: z.unknown().optional(),
    principal: Principal,
    /** When it was decided, broker time. */
    atMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal("send"),
    id: effectId,
    blobs,
    to: ActorKey,
    toGenesis: Genesis.optional(),
    /** Dense counter of this link, starting at 1. */
    n: z.number(),
    event: PlainEvent,
  }),
  z.object({
    kind: z.literal("settled"),
    id: effectId,
    blobs,
    to: ActorKey,
    toGenesis: Genesis,
    childId: z.string(),
    childKey: z.string(),
    event: PlainEvent,
  }),
  z.object({ kind: z.literal("stop"), id: effectId, to: ActorKey }),
  z.object({
    kind: z.literal("emit"),
    id: effectId,
    blobs,
    event: PlainEvent,
    /** When it was decided, broker time. */
    atMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal("action"),
    id: effectId,
    blobs,
    name: z.string(),
    params: z.unknown().optional(),
    event: PlainEvent,
    /** Only when the action saw another context than the committed one. */
    context: z.unknown().optional(),
  }),
  z.object({
    kind: z.literal("log"),
    id: effectId,
    blobs,
    label: z.string().optional(),
    value: z.unknown(),
  }),
  z.object({ kind: z.literal("journal"), id: effectId, ...MACROSTEP }),
]);
export type Effect = z.infer<typeof Effect>;
export type EffectOf<K extends Effect["kind"]> = Extract<Effect, { kind: K }>;

/** Identity of the machine that wrote a record. */
export const MachineStamp = z.object({ id: z.string(), version: z.string(), hash: z.string() });
export type MachineStamp = z.infer<typeof MachineStamp>;

/** How journal entries name a machine: short, and another one for another structure. */
export const formatStamp = ({ id, version, hash }: MachineStamp): string => `${id}@${version}#${hash.slice(0, 12)}`;

/** Everything that one compare-and-set stores. */
export const ActorRecord = z.object({
  format: z.literal(1),
  key: ActorKey,
  type: ActorType,
  id: ActorId,
  genesis: Genesis,
  parent: ParentLink.optional(),
  principal: Principal,
  createdAtMs: z.number(),
  /** Of an actor that was started from outside: hash of its input, so that the same id with another input is known as such. */
  inputHash: z.string().optional(),
  machine: MachineStamp,
  /** Number of macrosteps applied. */
  rev: z.number(),
  status: RecordStatus,
  snapshot: StoredSnapshot,
  timers: z.record(z.string(), TimerEntry),
  outbox: z.array(Effect),
  /** Receiver `key^genesis` (or key, for children) → last counter used. */
  linksOut: z.record(z.string(), z.number()),
  /** Sender `key^genesis` → highest counter taken. Children have theirs in the child entry. */
  marks: z.record(z.string(), z.number()),
  /** First 8 bytes of the hashes of the last outside message ids, oldest first. */
  messageIds: z.instanceof(Uint8Array),
  /** Highest sequence considered per lane, and the generation of the stream that counted it. */
  considered: z.object({ generation: z.string(), inbox: z.number(), control: z.number() }),
  /** systemId → key, for the actors of this root. */
  directory: z.record(z.string(), z.string()),
  /** Kept on a terminal record: what a duplicate start is answered with. */
  settled: Effect.optional(),
  /** The record has ended for good and was made small; what a duplicate needs to be known as one is still here. Broker times. */
  tombstone: z.object({ endedAtMs: z.number(), atMs: z.number() }).optional(),
});
export type ActorRecord = z.infer<typeof ActorRecord>;

/** The part of a frame that everyone may read without decoding (or decrypting) the payload. */
export const RecordHeader = z.object({
  /** Random token of the commit attempt. */
  token: z.string(),
  epoch: z.number(),
  key: z.string(),
  genesis: z.string(),
  rev: z.number(),
  generation: z.string(),
  inboxSeq: z.number(),
  controlSeq: z.number(),
  status: RecordStatus,
  needsWork: z.boolean(),
  /** Incarnation of the node that wrote it. */
  writer: z.string(),
  /** Fields for lists and filters. */
  list: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
export type RecordHeader = z.infer<typeof RecordHeader>;
