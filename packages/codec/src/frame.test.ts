import { RECORD_HARD_LIMIT_BYTES, RECORD_SOFT_LIMIT_BYTES } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { FRAME_PREFIX_BYTES, RECORD_FORMAT, writeFrame } from "./frame.ts";
import { checkRecordSize } from "./sizes.ts";
import { caught } from "./testing/caught.ts";
import { sampleHeader, sampleRecord } from "./testing/sample-record.ts";
import { TestRef, testRefs } from "./testing/test-ref.ts";

const codec = createCodec({ ref: testRefs });
const record = sampleRecord();
const header = sampleHeader();
const frame = codec.encodeRecord(record, header);
const changed = (change: (bytes: Uint8Array) => void): Uint8Array => {
  const copy = new Uint8Array(frame);
  change(copy);
  return copy;
};
const framed = (header: unknown, record: unknown): Uint8Array =>
  writeFrame(codec.encodeValue(header), codec.encodeValue(record));

describe("a record", () => {
  test("comes back with its header", () => {
    expect(codec.decodeRecord(frame)).toStrictEqual({ header, record });
    expect(codec.decodeHeader(frame)).toStrictEqual(header);
  });

  test("is whole when it outgrows what the first one of a codec is written into, and what was written before stays", () => {
    const fresh = createCodec({ ref: testRefs });
    const large = sampleRecord(Array.from({ length: 500 }, (_, n) => `line ${n} of a record that grows and grows`));
    const bytes = fresh.encodeRecord(large, header);
    const copy = Uint8Array.from(bytes);
    fresh.encodeRecord(record, header);
    expect(bytes).toStrictEqual(copy);
    expect(codec.decodeRecord(bytes)).toStrictEqual({ header, record: large });
    expect(bytes).toStrictEqual(framed(header, large));
  });

  test("keeps references and tagged values in the fields that the schema leaves open", () => {
    const ref = new TestRef({ key: "d-1.task.t1", id: "t1" });
    const rich = sampleRecord({
      ref,
      seen: new Map([["a", new Set([1n])]]),
      last: undefined,
      failed: new TypeError("x"),
    });
    const full = { ...rich, outbox: [{ kind: "log" as const, id: "17#0", value: ref }] };
    expect(codec.decodeRecord(codec.encodeRecord(full, header)).record).toStrictEqual(full);
  });

  test("is laid out as README.md says", () => {
    const view = new DataView(frame.buffer);
    expect(new TextDecoder().decode(frame.subarray(0, 2))).toBe("HF");
    expect([frame[2], frame[3]]).toStrictEqual([RECORD_FORMAT, 0]);
    expect(FRAME_PREFIX_BYTES + view.getUint32(4) + view.getUint32(8)).toBe(frame.length);
    expect(codec.decodeValue(frame.subarray(16, 16 + view.getUint32(4)))).toStrictEqual(header);
    expect(codec.decodeValue(frame.subarray(16 + view.getUint32(4)))).toStrictEqual(record);
  });

  test("can be read from the middle of a larger buffer", () => {
    const buffer = new Uint8Array(frame.length + 20);
    buffer.set(frame, 7);
    expect(codec.decodeRecord(buffer.subarray(7, 7 + frame.length)).record).toStrictEqual(record);
  });
});

describe("HF-2002: damaged bytes never give a record", () => {
  test.each<[string, Uint8Array, string]>([
    ["no bytes", new Uint8Array(), "0 bytes, a frame has at least 16"],
    ["another magic", changed((bytes) => (bytes[0] = 0x58)), 'do not begin with "HF"'],
    ["a cut end", frame.subarray(0, -1), "the rest is missing"],
    ["more bytes than announced", Uint8Array.from([...frame, 0]), "were announced"],
    ["absurd lengths", changed((bytes) => bytes.fill(0xff, 4, 12)), "the rest is missing"],
    ["another checksum", changed((bytes) => (bytes[15] = (bytes[15] ?? 0) ^ 1)), "the checksum does not fit"],
    [
      "another payload",
      changed((bytes) => (bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1)),
      "the checksum does not fit",
    ],
    ["a format that was never released", changed((bytes) => (bytes[2] = 0)), "format 0 found"],
    [
      "a header with another shape",
      framed({ ...header, rev: "x" }, record),
      "header: Invalid input: expected number, received string at rev",
    ],
    [
      "a record with another shape",
      framed(header, { ...record, snapshot: { ...record.snapshot, status: 7 } }),
      "at snapshot.status",
    ],
    ["a header of another revision", framed({ ...header, rev: 16 }, record), "its header has another rev"],
    [
      "a header of another actor",
      framed({ ...header, key: "d-3.conversation.c2" }, record),
      "its header has another key",
    ],
    [
      "an unknown tag",
      framed(header, { ...record, directory: { a: { $hf: ["map", [], "object"] } } }),
      "at directory.a",
    ],
  ])("%s", (_, bytes, reason) => {
    const fault = caught(() => codec.decodeRecord(bytes));
    expect(fault.code).toBe("HF-2002");
    expect(fault.message).toContain(reason);
  });

  test("the header alone tells of damaged lengths and structure", () => {
    expect(caught(() => codec.decodeHeader(frame.subarray(0, 60))).code).toBe("HF-2002");
    expect(caught(() => codec.decodeHeader(changed((bytes) => bytes.fill(0xc1, 16, 20)))).code).toBe("HF-2002");
    expect(caught(() => codec.decodeHeader(framed({ ...header, needsWork: 1 }, record))).message).toContain(
      "at needsWork",
    );
  });
});

describe("HF-2003: bytes of a newer build are recognised as such", () => {
  test.each<[string, number, number, number, string]>([
    ["a newer format", 2, 2, 1, "format 2 found, this build reads formats up to 1"],
    ["a sealed payload", 3, 1, 0, "a sealed payload found, this build reads payloads in the clear"],
    ["an unknown flag", 3, 0x81, 0, "flags 129 found, this build reads no flags"],
  ])("%s", (_, offset, found, known, message) => {
    const bytes = changed((bytes) => (bytes[offset] = found));
    for (const read of [codec.decodeRecord, codec.decodeHeader]) {
      const fault = caught(() => read(bytes));
      expect([fault.code, fault.facts]).toStrictEqual(["HF-2003", { found, known }]);
      expect(fault.message).toContain(message);
    }
  });

  test("even when it is laid out differently after its first bytes", () => {
    expect(
      caught(() => codec.decodeRecord(Uint8Array.from([0x48, 0x46, 9, ...Array.from({ length: 20 }, () => 0)]))).code,
    ).toBe("HF-2003");
  });
});

describe("what must not be written", () => {
  test("a header that belongs to another revision is refused", () => {
    expect(caught(() => codec.encodeRecord(record, { ...header, rev: 3 })).message).toContain("another rev");
  });

  test("a header with other than plain values is refused", () => {
    const bare: Record<string, string> = Object.assign(Object.create(null), { $hf: "x" });
    for (const list of [bare, { n: -0 }, { $hf: "x" }, { constructor: "x" }, { n: Number.NaN }, { text: "\uD800" }]) {
      expect(caught(() => codec.encodeRecord(record, { ...header, list })).code).toBe("HF-2001");
    }
  });

  test("a header that could not be read again is refused", () => {
    expect(caught(() => codec.encodeRecord(record, { ...header, epoch: Number.NaN })).message).toContain("at epoch");
  });

  test("a refused value is named with the actor and its path in the record", () => {
    const fault = caught(() => codec.encodeRecord(sampleRecord({ a: { b: [() => 1] } }), header));
    expect(fault.message).toMatch(/^Record d-3\.conversation\.c1: a function at snapshot\.context\.a\.b\[0\]\. /);
  });
});

describe("size limits", () => {
  test("are met at the byte", () => {
    expect(checkRecordSize(RECORD_SOFT_LIMIT_BYTES - 1)).toStrictEqual({ kind: "ok" });
    expect(checkRecordSize(RECORD_SOFT_LIMIT_BYTES)).toStrictEqual({
      kind: "soft",
      limitBytes: RECORD_SOFT_LIMIT_BYTES,
    });
    expect(checkRecordSize(RECORD_HARD_LIMIT_BYTES).kind).toBe("soft");
    expect(checkRecordSize(RECORD_HARD_LIMIT_BYTES + 1)).toStrictEqual({
      kind: "hard",
      limitBytes: RECORD_HARD_LIMIT_BYTES,
    });
  });

  test("HF-2004: a record beyond the hard limit is refused with the largest fields of its context", () => {
    const context = {
      small: 1,
      notes: "n".repeat(20_000),
      files: ["f".repeat(400_000)],
      log: "l".repeat(200_000),
      tail: "t",
    };
    const fault = caught(() => codec.encodeRecord(sampleRecord(context), header));
    expect(fault.code).toBe("HF-2004");
    expect(fault.facts).toMatchObject({
      key: record.key,
      limitBytes: RECORD_HARD_LIMIT_BYTES,
      largest: "files 400006 B, log 200005 B, notes 20003 B",
    });
  });

  test("a record at the hard limit is still written", () => {
    const spare = RECORD_HARD_LIMIT_BYTES - codec.encodeRecord(sampleRecord("x".repeat(100_000)), header).length;
    const largest = codec.encodeRecord(sampleRecord("x".repeat(100_000 + spare)), header);
    expect(largest.length).toBe(RECORD_HARD_LIMIT_BYTES);
    expect(caught(() => codec.encodeRecord(sampleRecord("x".repeat(100_001 + spare)), header)).facts["largest"]).toBe(
      "",
    );
  });
});
