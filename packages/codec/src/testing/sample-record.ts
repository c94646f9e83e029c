import type { ActorRecord, RecordHeader } from "@holdfast/protocol";

/** A record of about 1 KiB as a conversation in the middle of a turn has it. */
export const sampleRecord = (context: unknown = { title: "Greeting", turn: 4 }): ActorRecord => ({
  format: 1,
  key: "d-3.conversation.c1",
  type: "conversation",
  id: "c1",
  genesis: "g1:42",
  principal: { kind: "service", id: "api", roles: ["writer"] },
  createdAtMs: 1_790_000_000_000,
  machine: { id: "conversation", version: "1.0.0", hash: "a1b2c3d4e5f60718" },
  rev: 17,
  status: "active",
  snapshot: {
    status: "active",
    value: { talk: "thinking" },
    context,
    historyValue: {},
    children: {
      model: {
        kind: "job",
        src: "model.generate",
        key: "model-abcdefghijklmnopqrstuvwxyz",
        status: "active",
        input: { throughRev: 16 },
      },
    },
  },
  timers: {
    patience: {
      gen: "t16.1",
      dueAtMs: 1_790_000_030_000,
      to: "d-3.conversation.c1",
      event: { type: "xstate.after.patience.conversation.talk" },
    },
  },
  outbox: [{ kind: "emit", id: "17#0", event: { type: "turnStarted", turn: 4 } }],
  linksOut: {},
  marks: { "d-1.task.t1^g1:7": 2 },
  messageIds: Uint8Array.from({ length: 16 }, (_, index) => index),
  considered: { generation: "g1", inbox: 412, control: 3 },
  directory: {},
});

export const sampleHeader = (record: ActorRecord = sampleRecord()): RecordHeader => ({
  token: "9f1c2b3a4d5e6f70",
  epoch: 7,
  key: record.key,
  genesis: record.genesis,
  rev: record.rev,
  generation: "g1",
  inboxSeq: 412,
  controlSeq: 3,
  status: record.status,
  needsWork: true,
  writer: "node1:abcdef12",
  list: { title: "Greeting", turn: 4, pinned: false },
});
