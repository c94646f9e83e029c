// Writes the golden record of format 1, once. It says what a released build stored, so it is never written again: a change of the
// bytes is a new format with a folder, a script and an upcaster of its own.
//   node test/compat/write-golden.ts
import { mkdir, writeFile } from "node:fs/promises";
import { decode } from "@msgpack/msgpack";
import { createCodec, FRAME_PREFIX_BYTES, type CodecOptions } from "@holdfast/codec";
import { RuntimeFault, type ActorRecord, type Principal, type RecordHeader } from "@holdfast/protocol";

const FOLDER = new URL("golden/v1/", import.meta.url);

type RefAddress = ReturnType<CodecOptions["ref"]["encode"]>;

/** Stands for an actor reference. */
class Ref {
  readonly address: RefAddress;
  constructor(address: RefAddress) {
    this.address = address;
  }
}

const codec = createCodec({
  ref: {
    tag: "ref",
    is: (value) => value instanceof Ref,
    encode: (value) => {
      if (!(value instanceof Ref)) throw new TypeError("not a reference");
      return value.address;
    },
    decode: (plain) => new Ref(plain),
  },
});

const withStack = <T extends Error>(error: T): T =>
  Object.assign(error, { stack: `${String(error)}\n    at charge (payment.ts:12:3)` });

const KEY = "d-3.conversation.c1";
const CHILD = { key: "d-1.task.research-mfzwizlqoi2dgnbvgy3tqojqgi", genesis: "g1:40" };
const PRINCIPAL: Principal = { kind: "person", id: "ada", roles: ["owner", "billing-admin"] };

const context = {
  text: 'Grüße, 世界 👋 "quoted"\n',
  long: "0123456789abcdef".repeat(20),
  numbers: [0, 1, -1, 127, 128, -32, -33, 255, 256, 65_535, 65_536, -32_769, 2 ** 32, 1.5, -0.1, 1e300, 2 ** 53],
  flags: [true, false, null],
  nothing: undefined,
  items: [undefined, [], {}],
  zero: -0,
  big: [5n, -(2n ** 63n), 2n ** 64n],
  date: new Date(1_790_000_000_123),
  map: new Map<unknown, unknown>([
    ["plain", 1],
    [2, new Set(["a", 3n])],
    [{ as: "key" }, undefined],
  ]),
  set: new Set<unknown>([1, "b", [null]]),
  error: withStack(
    Object.assign(new TypeError("card was declined", { cause: new Map([["attempt", 2]]) }), { code: "E_DECLINED" }),
  ),
  fault: withStack(
    new RuntimeFault("HF-3005", "Actor c1: busy", { facts: { waiting: 64, lane: "inbox", full: true } }),
  ),
  regexp: /^a\/b$/giu,
  bytes: Uint8Array.from([0, 127, 128, 255]),
  typed: [Float64Array.from([1.5, -2]), Int16Array.from([1, -2]), BigUint64Array.from([2n ** 64n - 1n])],
  ref: new Ref({ key: CHILD.key, id: "research", genesis: CHILD.genesis }),
  parentRef: new Ref({ key: "d-9.group.g1", id: "g1" }),
  escaped: { $hf: ["undefined"], constructor: "c", toJSON: -0 },
  deep: { a: [{ b: new Map([["c", { d: new Date(0) }]]) }] },
};

const outbox: ActorRecord["outbox"] = [
  {
    kind: "start",
    id: "17#0",
    to: CHILD.key,
    childId: "research",
    sync: true,
    input: { topic: "NATS" },
    principal: PRINCIPAL,
  },
  {
    kind: "send",
    id: "17#1",
    to: CHILD.key,
    toGenesis: CHILD.genesis,
    n: 1,
    event: { type: "hurry", by: new Date(5) },
  },
  {
    kind: "settled",
    id: "17#2",
    to: "d-9.group.g1",
    toGenesis: "g1:7",
    childId: "c1",
    childKey: KEY,
    event: { type: "xstate.done.actor.c1", output: 42 },
  },
  { kind: "stop", id: "17#3", to: CHILD.key },
  { kind: "emit", id: "17#4", event: { type: "turnStarted", turn: 4 } },
  {
    kind: "action",
    id: "17#5",
    name: "notify",
    params: { channel: "mail" },
    event: { type: "asked" },
    context: { turn: 3 },
  },
  { kind: "log", id: "17#6", label: "debug", value: [1, undefined] },
  {
    kind: "journal",
    id: "17#7",
    rev: 17,
    prevRev: 16,
    event: { type: "asked", text: "why?" },
    cause: { kind: "event", id: "m1" },
    principal: PRINCIPAL,
    from: { talk: "idle" },
    to: { talk: "thinking" },
    status: "active",
    effects: ["17#0", "17#1"],
    atMs: 1_790_000_000_000,
  },
];

// Keys stand in the order of the schema, so that the record encodes to the same bytes again after it was read.
const record: ActorRecord = {
  format: 1,
  key: KEY,
  type: "conversation",
  id: "c1",
  genesis: "g1:42",
  parent: { key: "d-9.group.g1", genesis: "g1:7", childId: "c1", sync: false },
  principal: PRINCIPAL,
  createdAtMs: 1_789_999_999_999,
  machine: { id: "conversation", version: "1.0.0", hash: "a1b2c3d4e5f60718" },
  rev: 17,
  status: "active",
  snapshot: {
    status: "active",
    value: { talk: "thinking", tasks: { research: "running" } },
    context,
    output: undefined,
    historyValue: { "conversation.talk.hist": ["conversation.talk.thinking"] },
    children: {
      research: {
        kind: "actor",
        src: "task",
        key: CHILD.key,
        status: "active",
        sync: true,
        lastSnapshot: { value: "running" },
        mark: 3,
      },
      model: {
        kind: "job",
        src: "model.generate",
        key: "model-abcdefghijklmnopqrstuvwxyz",
        status: "active",
        input: { throughRev: 16 },
        attempt: 2,
        runner: "node1:abcdef12",
      },
      ticker: {
        kind: "host",
        src: "ticker",
        key: "ticker-abcdefghijklmnopqrstuvwxy",
        status: "error",
        systemId: "clock",
        error: "gone",
      },
    },
  },
  timers: {
    patience: {
      gen: "t16.1",
      dueAtMs: 1_790_000_030_000,
      to: KEY,
      toGenesis: "g1:42",
      event: { type: "xstate.after.patience.conversation.talk" },
    },
  },
  outbox,
  linksOut: { [`${CHILD.key}^${CHILD.genesis}`]: 1 },
  marks: { "d-5.conversation.c9^g1:3": 12 },
  messageIds: Uint8Array.from({ length: 24 }, (_, index) => (index * 11) % 256),
  considered: { generation: "g1", inbox: 412, control: 3 },
  directory: { clock: "ticker-abcdefghijklmnopqrstuvwxy" },
};

const header: RecordHeader = {
  token: "9f1c2b3a4d5e6f70",
  epoch: 7,
  key: KEY,
  genesis: "g1:42",
  rev: 17,
  generation: "g1",
  inboxSeq: 412,
  controlSeq: 3,
  status: "active",
  needsWork: true,
  writer: "node1:abcdef12",
  list: { title: "Grüße", turn: 4, cost: 0.25, pinned: false },
};

const frame = codec.encodeRecord(record, header);
const headerEnd = FRAME_PREFIX_BYTES + new DataView(frame.buffer).getUint32(4);
// The description is what an independent msgpack library reads.
const content = {
  header: decode(frame.subarray(FRAME_PREFIX_BYTES, headerEnd)),
  record: decode(frame.subarray(headerEnd)),
};
const description = JSON.stringify(
  content,
  (_, value: unknown) => (value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString("hex") } : value),
  2,
);

await mkdir(FOLDER, { recursive: true });
// `wx`: an existing file is an error.
await writeFile(new URL("record.hfr", FOLDER), frame, { flag: "wx" });
await writeFile(new URL("record.json", FOLDER), `${description}\n`, { flag: "wx" });
process.stdout.write(`wrote ${frame.length} bytes\n`);
