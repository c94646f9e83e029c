import { EventKind, exitKey, PANIC_KEY, RuntimeFault, Seat, subjectsOf } from "@holdfast/protocol";

/** The users of a server that Holdfast starts. */
export type NatsUserName = "node" | "client" | "operator" | "subscriber" | RunnerUserName;

/** `runner_<seat>`: each seat has a user of its own. */
type RunnerUserName = `runner_${string}`;

export type NatsPasswords = Readonly<Record<Exclude<NatsUserName, RunnerUserName>, string>>;

export interface PermissionOptions {
  readonly ns: string;
  /** Shards of the namespace: streams are named one by one, since a NATS wildcard never matches part of a name. */
  readonly shards: number;
  /** Principal tokens (`person-local`) the client may speak for. */
  readonly principals: readonly string[];
  readonly passwords: NatsPasswords;
  /** Seats of runners, and the password of each. */
  readonly seats?: Readonly<Record<string, string>>;
}

interface UserConfig {
  readonly user: string;
  readonly password: string;
  readonly permissions: {
    readonly publish: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
    readonly subscribe?: { readonly allow: readonly string[] };
  };
}

/** `accounts` block of a nats-server configuration. */
export interface AccountsConfig {
  readonly accounts: Readonly<
    Record<
      string,
      {
        readonly jetstream?: "enabled";
        readonly users: readonly UserConfig[];
        readonly exports?: readonly unknown[];
        readonly imports?: readonly unknown[];
      }
    >
  >;
}

/** Account that owns every stream and bucket; only nodes are in it. */
export const FLEET_ACCOUNT = "HOLDFAST";

/** What a user outside the fleet account may do there. */
interface Grants {
  readonly user: Exclude<NatsUserName, "node">;
  readonly account: string;
  /** Subjects whose requests get one answer: JetStream's API, publishes that are acknowledged. */
  readonly requests: readonly string[];
  /** Subjects whose requests get many answers. */
  readonly manyAnswers: readonly string[];
  /** Subjects it may hear: what nodes publish. What another guest publishes is a request and reaches streams, not these. */
  readonly hears: readonly string[];
}

/**
 * Who may do what on a server that Holdfast starts. Pure.
 *
 * `node` has the fleet account to itself, and may do anything there but say how a node has ended. `client` (a gateway or a program acting for its
 * principals), `operator` (reads everything, asks nodes to leave, stops the fleet, says how nodes have ended, leaves commands for them, changes
 * nothing itself), `subscriber` (hears and reads public events, nothing else) and the user of each runner's seat live in
 * accounts of their own and see only what is imported. Permissions inside one account would not hold them: the server sends
 * its answer to whatever reply subject a request names and checks no permission for it, so whoever may read a stream raw could have any
 * stored bytes published as an actor's record or as a node's message. An imported request answers into the account of the one who asked.
 * What is left: a guest may aim a push consumer at a subject somebody in the fleet account hears by its exact name, so nodes hear commands by
 * wildcard or through streams.
 */
export function accountsOf(options: PermissionOptions): AccountsConfig {
  const guests = [
    clientGrants(options),
    operatorGrants(options),
    subscriberGrants(options),
    ...Object.keys(options.seats ?? {}).map((seat) => runnerGrants(options, seat)),
  ];
  return {
    accounts: {
      [FLEET_ACCOUNT]: {
        jetstream: "enabled",
        users: [{ user: "node", password: options.passwords.node, permissions: nodeLimits(options) }],
        exports: exportsFor(guests),
      },
      ...Object.fromEntries(
        guests.map((guest) => [guest.account, guestAccount(guest, passwordOf(options, guest.user))]),
      ),
    },
  };
}

/** A node never says how a node has ended. */
const nodeLimits = ({ ns }: PermissionOptions): UserConfig["permissions"] => ({
  publish: { deny: [`$KV.${subjectsOf(ns).fleetBucket}.${exitKey("*")}`] },
});

/** A secret. @throws RuntimeFault HF-1002 for the user of a seat that the server was not started with */
export function passwordOf(options: Pick<PermissionOptions, "passwords" | "seats">, user: NatsUserName): string {
  if (!isRunner(user)) return options.passwords[user];
  const password = options.seats?.[user.slice(RUNNER_PREFIX.length)];
  if (password !== undefined) return password;
  throw new RuntimeFault(
    "HF-1002",
    `User ${user} of the managed nats-server: a seat it was started with expected, none found. Name the seat when the server is started.`,
    { facts: { user } },
  );
}
const RUNNER_PREFIX = "runner_";
const isRunner = (user: NatsUserName): user is RunnerUserName => user.startsWith(RUNNER_PREFIX);
/** Inbox prefix each user must give to its client library; no other inbox is open to it. */
export const inboxPrefixOf = (user: NatsUserName): string => `_INBOX_${user}`;

function clientGrants({ ns, shards, principals }: PermissionOptions): Grants {
  const subjects = subjectsOf(ns);
  const reads = readGrants(streamsOf(ns, shards));
  return {
    user: "client",
    account: "HOLDFAST_CLIENT",
    requests: [
      ...reads.requests,
      ...principals.map((principal) => `hf.${ns}.in.${principal}.>`),
      `$KV.${subjects.idempotencyBucket}.>`,
    ],
    manyAnswers: reads.manyAnswers,
    hears: [`hf.${ns}.live.>`],
  };
}

function operatorGrants({ ns, shards }: PermissionOptions): Grants {
  const reads = readGrants(streamsOf(ns, shards));
  return {
    user: "operator",
    account: "HOLDFAST_OPERATOR",
    requests: [
      ...reads.requests,
      `$KV.${subjectsOf(ns).fleetBucket}.drain.*`,
      `$KV.${subjectsOf(ns).fleetBucket}.${PANIC_KEY}`,
      `$KV.${subjectsOf(ns).fleetBucket}.${exitKey("*")}`,
      // Commands to nodes; what nodes make of them is in other keys of the bucket.
      `$KV.${subjectsOf(ns).stuckBucket}.command.>`,
      "$JS.API.STREAM.NAMES",
      "$JS.API.STREAM.LIST",
      ...streamsOf(ns, shards).flatMap((stream) => [
        `$JS.API.CONSUMER.NAMES.${stream}`,
        `$JS.API.CONSUMER.LIST.${stream}`,
      ]),
    ],
    manyAnswers: reads.manyAnswers,
    hears: [`hf.${ns}.>`, "$JS.EVENT.>"],
  };
}

/** Public events name ids and causes, never content: whoever hears them can read nothing that is private. */
function subscriberGrants({ ns }: PermissionOptions): Grants {
  const subjects = subjectsOf(ns);
  return {
    user: "subscriber",
    account: "HOLDFAST_SUBSCRIBER",
    ...readGrants([subjects.eventsStream(0)]),
    hears: EventKind.options.map((kind) => subjects.event(kind, [">"])),
  };
}

/** A runner hears what hosts say to its own seat and answers there: no stream, no other seat, no actor. */
function runnerGrants({ ns }: PermissionOptions, seat: string): Grants {
  const subjects = subjectsOf(ns);
  return {
    user: `${RUNNER_PREFIX}${Seat.parse(seat)}`,
    account: `HOLDFAST_RUNNER_${seat}`,
    requests: [subjects.fromRunner(seat, "*")],
    manyAnswers: [],
    hears: [subjects.toRunner(seat, "*")],
  };
}

/** Every stream of a namespace by its JetStream name. */
function streamsOf(ns: string, shards: number): readonly string[] {
  const subjects = subjectsOf(ns);
  return [
    ...Array.from({ length: shards }, (_, shard) => [
      subjects.actorsStream(shard),
      subjects.inboxStream(shard),
      subjects.parkedStream(shard),
      subjects.journalStream(shard),
      subjects.eventsStream(shard),
    ]).flat(),
    `KV_${subjects.fleetBucket}`,
    `KV_${subjects.stuckBucket}`,
    `KV_${subjects.idempotencyBucket}`,
    `OBJ_${subjects.blobsBucket}`,
    subjects.auditStream,
  ];
}

function readGrants(streams: readonly string[]): Pick<Grants, "requests" | "manyAnswers"> {
  return {
    requests: [
      "$JS.API.INFO",
      ...streams.flatMap((stream) => [
        `$JS.API.STREAM.INFO.${stream}`,
        `$JS.API.STREAM.MSG.GET.${stream}`,
        `$JS.API.DIRECT.GET.${stream}`,
        `$JS.API.DIRECT.GET.${stream}.>`,
        `$JS.API.CONSUMER.CREATE.${stream}`,
        `$JS.API.CONSUMER.CREATE.${stream}.>`,
        `$JS.API.CONSUMER.INFO.${stream}.*`,
        `$JS.API.CONSUMER.DELETE.${stream}.*`,
        `$JS.FC.${stream}.>`,
      ]),
    ],
    manyAnswers: streams.map((stream) => `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`),
  };
}

/** One export per subject, open to exactly the guests that were granted it; an export without a list would be open to every account. */
function exportsFor(guests: readonly Grants[]): readonly unknown[] {
  const listeners = guests.map((guest) => ({
    account: guest.account,
    subjects: [...guest.hears, `${inboxPrefixOf(guest.user)}.>`],
  }));
  const requests = guests.map(({ account, requests }) => ({ account, subjects: requests }));
  const pulls = guests.map(({ account, manyAnswers }) => ({ account, subjects: manyAnswers }));
  return [
    ...bySubject(requests).map(([service, accounts]) => ({ service, accounts })),
    // The server remembers a many-answers request until the asker's subscription ends, so only pulls are such.
    ...bySubject(pulls).map(([service, accounts]) => ({
      service,
      accounts,
      response_type: "stream",
    })),
    // Ordered readers have their messages delivered to the guest's own inbox.
    ...bySubject(listeners).map(([stream, accounts]) => ({ stream, accounts })),
  ];
}

function bySubject(
  lists: readonly { readonly account: string; readonly subjects: readonly string[] }[],
): readonly (readonly [string, readonly string[]])[] {
  const subjects = new Set(lists.flatMap((list) => list.subjects));
  return [...subjects].map((subject) => [
    subject,
    lists.filter((list) => list.subjects.includes(subject)).map((list) => list.account),
  ]);
}

function guestAccount(guest: Grants, password: string): AccountsConfig["accounts"][string] {
  const publish = [...guest.requests, ...guest.manyAnswers];
  const subscribe = [...guest.hears, `${inboxPrefixOf(guest.user)}.>`];
  const account = FLEET_ACCOUNT;
  return {
    users: [
      {
        user: guest.user,
        password,
        permissions: { publish: { allow: publish }, subscribe: { allow: subscribe } },
      },
    ],
    imports: [
      ...publish.map((subject) => ({ service: { account, subject } })),
      ...subscribe.map((subject) => ({ stream: { account, subject } })),
    ],
  };
}
