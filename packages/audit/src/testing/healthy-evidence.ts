import type { AcceptedCommand } from "../check/accepted-command.ts";
import type {
  CheckedActor,
  CheckedLease,
  CheckedMessage,
  CheckEvidence,
  CheckedRecord,
} from "../check/check-evidence.ts";
import type { CheckedEntry, JournalMessage } from "../check/journal-message.ts";

export const PARENT = "d-1.boss.b1";
export const CHILD = "d-2.task.t1";

/** Evidence that a test may change before it is judged. */
export interface Draft extends CheckEvidence {
  readonly journal: JournalMessage[];
  readonly accepted: AcceptedCommand[];
  readonly messages: CheckedMessage[];
  readonly leases: CheckedLease[];
  readonly ledger: string[];
  readonly unreadable: { where: string; why: string }[];
  readonly actorOf: (key: string) => CheckedActor;
  readonly recordOf: (key: string) => CheckedRecord;
  /** Entries of an actor, all in one message. */
  readonly entriesOf: (key: string) => CheckedEntry[];
  readonly entryAt: (key: string, rev: number) => CheckedEntry;
}

const A = "a:00000001";
const B = "b:00000002";
const PERSON = { kind: "person", id: "ann", roles: [] };

/**
 * A boss that was started, told twice, heard its task once and got its outcome, and an outcome of a job: by node a in epoch 1, from
 * revision 4 on by node b in epoch 2. Its task lived on b.
 */
export function healthy(): Draft {
  const boss: CheckedEntry[] = [
    entry(1, { cause: { kind: "start", id: "s1" }, principal: PERSON, from: undefined, to: "idle" }),
    entry(2, { cause: { kind: "event", id: "m1" }, principal: PERSON, to: "busy" }),
    entry(3, {
      cause: { kind: "event", id: `${CHILD}^g:2@1#0` },
      sender: { key: CHILD, genesis: "g:2", n: 1 },
      from: "busy",
      to: "busy",
    }),
    entry(4, {
      cause: { kind: "settled", id: `${CHILD}:settled` },
      from: "busy",
      to: "idle",
      writer: { incarnation: B, epoch: 2 },
    }),
    entry(5, { cause: { kind: "settled", id: "job-1:settled" }, writer: { incarnation: B, epoch: 2 } }),
  ];
  const task: CheckedEntry[] = [
    entry(1, {
      ...ofTask,
      cause: { kind: "start", id: `${PARENT}^g:1@2#0` },
      principal: PERSON,
      from: undefined,
      to: "on",
    }),
    entry(2, {
      ...ofTask,
      cause: { kind: "event", id: "m2" },
      principal: PERSON,
      from: "on",
      to: "end",
      status: "done",
    }),
  ];
  const actors = [
    actor(record(PARENT, "g:1", 5, "active", "idle"), { epoch: 2, writer: B }),
    actor(
      { ...record(CHILD, "g:2", 2, "done", "end"), parent: { key: PARENT, genesis: "g:1", childId: "kid" } },
      { epoch: 7, writer: B },
    ),
  ];
  const journals = new Map([
    [PARENT, boss],
    [CHILD, task],
  ]);
  const actorOf = (key: string): CheckedActor => found(actors.find((one) => one.record.key === key));
  const entriesOf = (key: string): CheckedEntry[] => found(journals.get(key));
  return {
    atMs: 100_000,
    actors,
    journal: [...journals].map(([key, entries], index) => ({
      stream: "J",
      seq: index + 1,
      key,
      entries,
      bytes: new Uint8Array(0),
    })),
    messages: [
      { stream: "I", seq: 4, lane: "inbox", key: PARENT, principal: "person-ann", messageId: "m1", storedAtMs: 1 },
      { stream: "I", seq: 2, lane: "control", key: CHILD, principal: undefined, messageId: "x", storedAtMs: 1 },
    ],
    leases: [lease("d-1", 2), lease("d-2", 7)],
    accepted: [
      { key: PARENT, messageId: "s1", outcome: "applied", rev: 1 },
      { key: PARENT, messageId: "m1", outcome: "accepted" },
      { key: PARENT, messageId: "m1", outcome: "applied", rev: 2 },
      { key: CHILD, messageId: "m2", outcome: "accepted" },
      { key: CHILD, messageId: "m3", outcome: "refused" },
    ],
    ledger: [
      JSON.stringify({ line: "attempt", attempt: 1, at: 1, callId: "call", idempotencyKey: "job-1", kind: "x" }),
      JSON.stringify({ line: "applied", attempt: 1, at: 1 }),
    ],
    blobs: new Map(),
    unreadable: [],
    actorOf,
    recordOf: (key) => actorOf(key).record,
    entriesOf,
    entryAt: (key, rev) => found(entriesOf(key).find((one) => one.rev === rev)),
  };
}

const ofTask = { key: CHILD, genesis: "g:2", writer: { incarnation: B, epoch: 7 } };

const entry = (rev: number, more: Partial<CheckedEntry>): CheckedEntry => ({
  key: PARENT,
  genesis: "g:1",
  rev,
  prevRev: rev - 1,
  event: { type: "said" },
  cause: { kind: "event", id: `e-${rev}` },
  from: "idle",
  to: "idle",
  status: "active",
  atMs: rev,
  writer: { incarnation: A, epoch: 1 },
  ...more,
});

const record = (
  key: string,
  genesis: string,
  rev: number,
  status: CheckedRecord["status"],
  value: string,
): CheckedRecord => ({
  key,
  type: key.split(".")[1] ?? "",
  id: key.split(".")[2] ?? "",
  genesis,
  rev,
  status,
  outbox: [],
  timers: {},
  considered: { generation: "g", inbox: 10, control: 10 },
  snapshot: { value, children: {} },
});

const actor = (of: CheckedRecord, { epoch, writer }: { epoch: number; writer: string }): CheckedActor => ({
  header: { epoch, key: of.key, genesis: of.genesis, rev: of.rev, status: of.status, needsWork: false, writer },
  record: of,
  bytes: new Uint8Array(0),
});

const lease = (partition: string, epoch: number): CheckedLease => ({
  partition,
  epoch,
  state: "held",
  holder: B,
  generation: "g",
  cursor: 20,
});

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the healthy evidence has no such thing");
  return value;
}
