import { formatActorKey, parseActorKey } from "./address.ts";
import { RuntimeFault } from "./errors.ts";
import type { ActorKey } from "./ids.ts";
import type { EventKind } from "./lifecycle-event.ts";
import { parsePrincipalToken, type Principal } from "./principal.ts";

/** NATS limits the protocol line to 4 KiB; far below it everything stays readable. */
export const MAX_SUBJECT_BYTES = 255;

/** Names of every stream, bucket and subject of one namespace. Pure string building; nothing else in the code base spells a subject. */
export interface Subjects {
  readonly ns: string;
  actorsBucket(shard: number): string;
  actorsStream(shard: number): string;
  actorSubject(shard: number, key: ActorKey): string;
  claimKey(partition: string): string;
  checkpointKey(partition: string): string;
  /** Where it stands that an actor is to be erased. */
  erasureKey(key: ActorKey): string;
  inboxStream(shard: number): string;
  inbox(key: ActorKey): string;
  control(key: ActorKey): string;
  outside(principal: Pick<Principal, "kind" | "id">, key: ActorKey): string;
  inboxFilters(partition: string): readonly string[];
  parkedStream(shard: number): string;
  parked(key: ActorKey): string;
  journalStream(shard: number): string;
  journal(key: ActorKey): string;
  eventsStream(shard: number): string;
  event(kind: EventKind, name: readonly string[]): string;
  live(key: ActorKey): string;
  /** What a host says to the runner of a seat over one connection; `*` for every connection. */
  toRunner(seat: string, connection: string): string;
  fromRunner(seat: string, connection: string): string;
  readonly fleetBucket: string;
  readonly stuckBucket: string;
  readonly idempotencyBucket: string;
  readonly blobsBucket: string;
  readonly auditStream: string;
  audit(verb: string): string;
}

/** No actor type begins with an underscore, and no key of an actor has two parts: whoever lists records passes it over. */
const ERASURE = "_erase-";

function checked(subject: string): string {
  if (subject.length > MAX_SUBJECT_BYTES) {
    throw new RuntimeFault(
      "HF-1002",
      `Subject of ${subject.length} bytes starts with "${subject.slice(0, 60)}": at most ${MAX_SUBJECT_BYTES} are allowed. Use shorter ids.`,
    );
  }
  return subject;
}

export function subjectsOf(ns: string): Subjects {
  const upper = ns.toUpperCase();
  return {
    ns,
    actorsBucket: (shard) => `hf_${ns}_actors_${shard}`,
    actorsStream: (shard) => `KV_hf_${ns}_actors_${shard}`,
    actorSubject: (shard, key) => checked(`$KV.hf_${ns}_actors_${shard}.${key}`),
    claimKey: (partition) => `${partition}._claim`,
    checkpointKey: (partition) => `${partition}._checkpoint`,
    erasureKey: (key) => {
      const { partition, type, id } = parseActorKey(key);
      return checked(`${partition}.${ERASURE}${type}-${id}`);
    },
    inboxStream: (shard) => `HF_${upper}_INBOX_${shard}`,
    inbox: (key) => checked(`hf.${ns}.inbox.${key}`),
    control: (key) => checked(`hf.${ns}.control.${key}`),
    outside: (principal, key) => checked(`hf.${ns}.in.${principal.kind}-${principal.id}.${key}`),
    inboxFilters: (partition) => [
      `hf.${ns}.inbox.${partition}.>`,
      `hf.${ns}.control.${partition}.>`,
      `hf.${ns}.in.*.${partition}.>`,
    ],
    parkedStream: (shard) => `HF_${upper}_PARKED_${shard}`,
    parked: (key) => checked(`hf.${ns}.parked.${key}`),
    journalStream: (shard) => `HF_${upper}_JOURNAL_${shard}`,
    journal: (key) => checked(`hf.${ns}.journal.${key}`),
    eventsStream: (shard) => `HF_${upper}_EVENTS_${shard}`,
    event: (kind, name) => checked(`hf.${ns}.${kind}.${name.join(".")}`),
    live: (key) => checked(`hf.${ns}.live.${parseActorKey(key).type}.${parseActorKey(key).id}`),
    // Not below `hf.<ns>`, which operators hear: an opening holds the token of its seat.
    toRunner: (seat, connection) => checked(`hfr.${ns}.${seat}.in.${connection}`),
    fromRunner: (seat, connection) => checked(`hfr.${ns}.${seat}.out.${connection}`),
    fleetBucket: `hf_${ns}_fleet`,
    stuckBucket: `hf_${ns}_stuck`,
    idempotencyBucket: `hf_${ns}_idem`,
    blobsBucket: `hf_${ns}_blobs`,
    auditStream: `HF_${upper}_AUDIT`,
    audit: (verb) => checked(`hf.${ns}.audit.${verb}`),
  };
}

/** Reads a {@link Subjects.erasureKey}: the actor that is to be erased. @returns undefined for other keys of a bucket of records */
export function parseErasureKey(key: string): ActorKey | undefined {
  const [, partition, type, id] = /^([^.]+)\._erase-([^.-]+)-([^.]+)$/.exec(key) ?? [];
  return partition === undefined || type === undefined || id === undefined
    ? undefined
    : formatActorKey({ partition, type, id });
}

/** How a message came in. Only the subject says it: NATS permissions guard the subject, nothing guards a payload. */
export interface InboxOrigin {
  readonly key: ActorKey;
  readonly lane: "inbox" | "control";
  /** Present on messages from outside the fleet. */
  readonly principal?: Principal;
}

/** Reads an inbox subject. @returns undefined when the subject is not one of this namespace's inbox subjects */
export function parseInboxSubject(ns: string, subject: string): InboxOrigin | undefined {
  const prefix = `hf.${ns}.`;
  if (!subject.startsWith(prefix)) return undefined;
  const dot = subject.indexOf(".", prefix.length);
  const lane = subject.slice(prefix.length, dot);
  const rest = subject.slice(dot + 1);
  if (lane === "inbox" || lane === "control") return { key: rest, lane };
  if (lane !== "in") return undefined;
  const end = rest.indexOf(".");
  return {
    key: rest.slice(end + 1),
    lane: "inbox",
    principal: parsePrincipalToken(rest.slice(0, end)),
  };
}
