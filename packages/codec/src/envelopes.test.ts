import type { Envelope, JournalEntry, MessageReply } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { ENVELOPE_LIMIT_BYTES } from "./sizes.ts";
import { caught } from "./testing/caught.ts";
import { TestRef, testRefs } from "./testing/test-ref.ts";

const codec = createCodec({ ref: testRefs });
const ref = new TestRef({ key: "d-1.task.t1", id: "t1", genesis: "g1:9" });
const send: Envelope = {
  v: 1,
  id: "m1",
  kind: "send",
  from: { key: "d-1.task.t1", genesis: "g1:9", n: 3 },
  event: { type: "asked", replyTo: ref, options: new Set(["a"]), none: undefined },
};
const entry: JournalEntry = {
  v: 1,
  key: "d-1.task.t1",
  genesis: "g1:9",
  rev: 4,
  prevRev: 3,
  event: { type: "asked", at: new Date(5) },
  cause: { kind: "event", id: "m1" },
  from: "idle",
  to: { busy: "asking" },
  status: "active",
  effects: ["4#0"],
  atMs: 1_790_000_000_000,
  machine: "task@1.0.0",
  node: "node1:abcdef12",
};
const reply: MessageReply = {
  v: 1,
  id: "m1",
  outcome: { kind: "applied", rev: 4, status: "active", value: new Map([["a", 1n]]) },
};

const withText = (characters: number): Envelope => ({
  v: 1,
  id: "m1",
  kind: "send",
  event: { type: "t", text: "x".repeat(characters) },
});

describe("messages come back as they were", () => {
  test("envelopes, with references and tagged values", () => {
    expect(codec.decodeEnvelope(codec.encodeEnvelope(send))).toStrictEqual(send);
  });

  test("journal batches", () => {
    expect(codec.decodeJournalBatch(codec.encodeJournalBatch([entry, { ...entry, rev: 5, prevRev: 4 }]))).toStrictEqual(
      [entry, { ...entry, rev: 5, prevRev: 4 }],
    );
  });

  test("replies", () => {
    expect(codec.decodeReply(codec.encodeReply(reply))).toStrictEqual(reply);
  });
});

describe("HF-1001: what is not a message is refused", () => {
  test.each<[string, unknown, string]>([
    ["an unknown kind", { ...send, kind: "own" }, "at kind"],
    ["an event without a type", { ...send, event: {} }, "at event.type"],
    ["a counter below 1", { ...send, from: { ...send.from, n: 0 } }, "at from.n"],
    ["a reply subject outside the inboxes", { ...send, replyTo: "hf.x.inbox.d-1.task.t1" }, "at replyTo"],
    ["something else altogether", [1], "at (the value itself)"],
  ])("%s", (_, value, at) => {
    const fault = caught(() => codec.decodeEnvelope(codec.encodeValue(value)));
    expect([fault.code, fault.next]).toStrictEqual(["HF-1001", "refuse"]);
    expect(fault.message).toContain(at);
  });

  test("bytes that are not msgpack", () => {
    const fault = caught(() => codec.decodeEnvelope(Uint8Array.from([0xc1])));
    expect([fault.code, fault.message.includes("the byte 0xc1 is not msgpack")]).toStrictEqual(["HF-1001", true]);
  });

  test("an empty journal batch, and an entry with its path", () => {
    expect(caught(() => codec.decodeJournalBatch(codec.encodeValue([]))).code).toBe("HF-1001");
    expect(
      caught(() => codec.decodeJournalBatch(codec.encodeValue([entry, { ...entry, atMs: "x" }]))).message,
    ).toContain("at [1].atMs");
  });

  test("more bytes than one message may have, in both directions", () => {
    const spare = ENVELOPE_LIMIT_BYTES - codec.encodeEnvelope(withText(100_000)).length;
    expect(codec.encodeEnvelope(withText(100_000 + spare)).length).toBe(ENVELOPE_LIMIT_BYTES);
    const fault = caught(() => codec.encodeEnvelope(withText(100_001 + spare)));
    expect([fault.code, fault.facts]).toStrictEqual([
      "HF-1001",
      { sizeBytes: ENVELOPE_LIMIT_BYTES + 1, limitBytes: ENVELOPE_LIMIT_BYTES },
    ]);
    expect(fault.message).toMatch(/^Envelope m1: /);
    const tooLong = codec.encodeValue(withText(100_001 + spare));
    expect(caught(() => codec.decodeEnvelope(tooLong)).facts).toStrictEqual(fault.facts);
    expect(caught(() => codec.encodeJournalBatch([{ ...entry, to: "x".repeat(ENVELOPE_LIMIT_BYTES) }])).code).toBe(
      "HF-1001",
    );
  });

  test("HF-2001: an envelope that cannot be stored is refused before it is sent", () => {
    expect(caught(() => codec.encodeEnvelope({ ...send, event: { type: "t", f: () => 1 } })).message).toMatch(
      /^Envelope m1: a function at event\.f\. /,
    );
  });
});
