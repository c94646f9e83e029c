import assert from "node:assert/strict";
import { Packr } from "msgpackr";
import { describe, expect, test } from "vitest";
import { createBomReader } from "./bom-reader.ts";
import { createCodec } from "./codec.ts";
import { sampleHeader, sampleRecord } from "./testing/sample-record.ts";
import { testRefs } from "./testing/test-ref.ts";
import { reverseElements } from "./typed-arrays.ts";

const codec = createCodec({ ref: testRefs });

describe("C1: encoded bytes stay as they are", () => {
  test("whatever is encoded after them", () => {
    const first = codec.encodeValue({ text: "a".repeat(3_000) });
    const frame = codec.encodeRecord(sampleRecord(), sampleHeader());
    const copies = [new Uint8Array(first), new Uint8Array(frame)];
    for (let round = 0; round < 50; round += 1) codec.encodeValue({ text: "b".repeat(200 * round) });
    expect([first, frame]).toStrictEqual(copies);
  });

  test("they own their memory, and hold nothing of msgpackr's pool", () => {
    for (const bytes of [codec.encodeValue({ a: 1 }), codec.encodeRecord(sampleRecord(), sampleHeader())]) {
      expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
      expect(bytes.buffer.byteLength).toBe(bytes.length);
    }
  });

  test("an encoding that failed halfway leaves nothing in the next one", () => {
    const before = codec.encodeValue({ a: 1 });
    expect(() => codec.encodeValue({ long: "x".repeat(9_000), f: () => 1 })).toThrow("a function at f");
    expect(codec.encodeValue({ a: 1 })).toStrictEqual(before);
  });
});

describe("C2: decoded values belong to the caller", () => {
  test("byte arrays do not alias the message they came from", () => {
    const bytes = codec.encodeValue({ raw: Uint8Array.from([1, 2, 3]), wide: Uint16Array.from([4, 5]) });
    const value = codec.decodeValue(bytes);
    bytes.fill(0xff);
    expect(value).toStrictEqual({ raw: Uint8Array.from([1, 2, 3]), wide: Uint16Array.from([4, 5]) });
    assert(typeof value === "object" && value !== null && "raw" in value && value.raw instanceof Uint8Array);
    expect(value.raw.buffer.byteLength).toBe(3);
  });

  test("a Buffer of a pool gives plain byte arrays", () => {
    const value = codec.decodeValue(Buffer.from(codec.encodeValue([Uint8Array.from([1, 2])])));
    expect(value).toStrictEqual([Uint8Array.from([1, 2])]);
  });

  test("the bytes handed in get no new property", () => {
    const bytes = codec.encodeValue([1, 2]);
    codec.decodeValue(bytes);
    codec.decodeRecord(codec.encodeRecord(sampleRecord(), sampleHeader()));
    expect(Object.keys(bytes)).toStrictEqual(["0", "1", "2"]);
  });
});

test("text that begins with U+FEFF is read in full where msgpackr leaves it to a TextDecoder", () => {
  const packr = new Packr({ useRecords: false });
  const decoder = new TextDecoder(); // Drops U+FEFF, as msgpackr does without its native part.
  const unpack = (bytes: Uint8Array): unknown =>
    bytes[0] === 0xdb ? decoder.decode(bytes.subarray(5)) : packr.unpack(bytes.subarray());
  const mark = "\uFEFF";
  for (const value of [
    `${mark}${"a".repeat(70)}`,
    `${mark}${mark}${"ä".repeat(70_000)}`,
    {
      [`${mark}${"k".repeat(70)}`]: [mark, `${mark}b`, `x${mark}`],
      rest: [1, 200, 70_000, 2 ** 31, -1, -100, -1000, -100_000, 1.5, null, true, false, 2 ** 40],
      bytes: [Buffer.alloc(3, 0xef), Buffer.alloc(300), Buffer.alloc(70_000)].map((bytes) => new Uint8Array(bytes)),
      lists: [[], Array.from({ length: 20 }, (_, index) => index), Array.from({ length: 70_000 }, () => "")],
      small: {},
    },
  ]) {
    const back = createBomReader(unpack)(new Uint8Array(packr.pack(value)));
    expect(JSON.parse(JSON.stringify(back))).toStrictEqual(JSON.parse(JSON.stringify(value)));
  }
});

test("typed arrays are little endian on every host", () => {
  expect(reverseElements(Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]), 4)).toStrictEqual(
    Uint8Array.from([4, 3, 2, 1, 8, 7, 6, 5]),
  );
  const bytes = codec.encodeValue(Uint16Array.from([0x0102]));
  expect([...bytes.subarray(-2)]).toStrictEqual([2, 1]);
});
