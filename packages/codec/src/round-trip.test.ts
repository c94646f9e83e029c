import { isDeepStrictEqual } from "node:util";
import { RuntimeFault } from "@holdfast/protocol";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { sampleHeader, sampleRecord } from "./testing/sample-record.ts";
import { TestRef, testRefs } from "./testing/test-ref.ts";

// fast-check prints the seed and the smallest example when a property fails; put them into fc.assert's options to see it again.
const codec = createCodec({ ref: testRefs });

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.string({ minLength: 60, maxLength: 70 }).map((rest) => `\uFEFF${rest}`),
  fc.constantFrom("$hf", "constructor", "toJSON", "hasOwnProperty", "__proto_", "toString", "then", "0", "-1", ""),
);
const key = text.filter((name) => name !== "__proto__");
const bytes = fc.uint8Array({ maxLength: 300 });
const leaf = fc.oneof(
  text,
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom<unknown>(undefined, null, -0, /a|b/gu, Number.NaN),
  fc.date({ noInvalidDate: true }),
  bytes,
  fc.float64Array({ maxLength: 4 }),
  fc.int16Array({ maxLength: 4 }),
  fc.uint8ClampedArray({ maxLength: 4 }),
  fc.bigInt64Array({ maxLength: 4 }),
  fc.record({ key: text, id: text, genesis: text }).map((address) => new TestRef(address)),
);
const { value } = fc.letrec<{ value: unknown; error: Error }>((tie) => ({
  error: fc
    .tuple(
      fc.constantFrom(Error, TypeError, RangeError),
      text,
      fc.option(tie("value"), { nil: undefined }),
      fc.option(text, { nil: undefined }),
    )
    .map(([Class, message, cause, code]) =>
      Object.assign(
        new Class(message, cause === undefined ? undefined : { cause }),
        code === undefined ? {} : { code },
      ),
    ),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(key, tie("value"), { maxKeys: 6, noNullPrototype: true }),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 4 }).map((items) => new Set(items)),
    tie("error"),
  ),
}));

const readers = [
  codec.decodeHeader,
  codec.decodeRecord,
  codec.decodeValue,
  codec.decodeEnvelope,
  codec.decodeJournalBatch,
  codec.decodeReply,
];
/** `value` or `fault`; anything else is a bug and says what was thrown. */
function outcome(read: (bytes: Uint8Array) => unknown, input: Uint8Array): string {
  try {
    read(input);
    return "value";
  } catch (error) {
    return error instanceof RuntimeFault ? "fault" : `threw ${String(error)}`;
  }
}
/** What readers threw that is not a RuntimeFault. */
const untyped = (input: Uint8Array): string[] =>
  readers.map((read) => outcome(read, input)).filter((what) => what !== "value" && what !== "fault");

test("any value comes back as it was", () => {
  fc.assert(
    fc.property(value, (original) => {
      expect(isDeepStrictEqual(codec.decodeValue(codec.encodeValue(original)), original)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test("any context comes back as it was, in a record", () => {
  fc.assert(
    fc.property(value, (context) => {
      const record = sampleRecord(context);
      expect(isDeepStrictEqual(codec.decodeRecord(codec.encodeRecord(record, sampleHeader())).record, record)).toBe(
        true,
      );
    }),
    { numRuns: 300 },
  );
});

test("encoding the same value again gives the same bytes, also after a way through the bytes", () => {
  fc.assert(
    fc.property(value, (original) => {
      const first = codec.encodeValue(original);
      expect(isDeepStrictEqual(codec.encodeValue(codec.decodeValue(first)), first)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

describe("damage", () => {
  const frame = codec.encodeRecord(sampleRecord({ text: "ä", list: [1, -0, new Map([["a", 1n]])] }), sampleHeader());

  test("no frame with one changed byte is read, whichever byte and whatever it becomes", () => {
    for (let offset = 0; offset < frame.length; offset += 1) {
      for (const change of [0x01, 0x80, 0xff, 1 + ((offset * 37) % 255)]) {
        const copy = new Uint8Array(frame);
        copy[offset] = (copy[offset] ?? 0) ^ change;
        expect(outcome(codec.decodeRecord, copy), `byte ${offset} changed by ${change}`).toBe("fault");
        expect(untyped(copy)).toStrictEqual([]);
      }
    }
  });

  test("no frame that was cut is read, not even its header", () => {
    for (let length = 0; length < frame.length; length += 1) {
      expect(outcome(codec.decodeRecord, frame.subarray(0, length)), `cut to ${length}`).toBe("fault");
      expect(outcome(codec.decodeHeader, frame.subarray(0, length)), `cut to ${length}`).toBe("fault");
    }
  });

  test("any bytes give a value or a RuntimeFault, never another error", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (input) => {
        expect(untyped(input)).toStrictEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("any bytes behind a correct prefix too, and where only a part of a message is changed", () => {
    const message = codec.encodeValue({
      v: 1,
      id: "m",
      kind: "send",
      event: { type: "t", e: new Error("x"), m: new Map([[1, /a/]]) },
    });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(message.length), (input, offset) => {
        const lengths = [0, 0, 0, input.length >> 1, 0, 0, 0, input.length - (input.length >> 1)];
        const framed = Uint8Array.from([0x48, 0x46, 1, 0, ...lengths, 0, 0, 0, 0, ...input]);
        const spliced = Uint8Array.from([
          ...message.subarray(0, offset),
          ...input,
          ...message.subarray(offset + input.length),
        ]);
        expect(untyped(framed)).toStrictEqual([]);
        expect(untyped(spliced)).toStrictEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("what could not be read leaves nothing behind for what can", () => {
    const good = codec.encodeValue({ kontext: ["x"], ключ: { a: 1 } });
    const expected = codec.decodeValue(good);
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (offset, change) => {
        const bad = new Uint8Array(good);
        bad[offset] = (bad[offset] ?? 0) ^ change;
        expect(untyped(bad)).toStrictEqual([]);
        expect(isDeepStrictEqual(codec.decodeValue(good), expected)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
