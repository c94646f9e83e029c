import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createPlainBytes } from "./plain-bytes.ts";
import { createPlainWriter } from "./plain-writer.ts";
import { sampleHeader, sampleRecord } from "./testing/sample-record.ts";
import { testRefs } from "./testing/test-ref.ts";
import { createWalk } from "./walk.ts";

// fast-check prints the seed and the smallest example when a property fails; put them into fc.assert's options to see it again.
const write = createPlainWriter();
const { pack } = createPlainBytes();
const walk = createWalk(testRefs);
const longWay = (value: unknown): Uint8Array => new Uint8Array(pack(walk(value, "Value")));
const short = (value: unknown): Uint8Array | undefined => write(value)?.slice();

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme", maxLength: 400 }),
  fc.string({ minLength: 20, maxLength: 300 }),
  fc.constantFrom(
    "",
    "$hf",
    "constructor",
    "toJSON",
    "hasOwnProperty",
    "toString",
    "0",
    "-1",
    "ä".repeat(16),
    "x".repeat(70_000),
  ),
);
const leaf = fc.oneof(
  text,
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.boolean(),
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(undefined, null, -0, -32, -33, -128, -129, -32_768, -32_769, 127, 128, 255, 256, 65_535, 65_536),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 20 }),
    fc.dictionary(
      text.filter((name) => name !== "__proto__"),
      tie("value"),
      { maxKeys: 20 },
    ),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
    fc.date({ noInvalidDate: true }),
  ),
}));

describe("the short way of writing a value", () => {
  test("Q1: makes the bytes that the long way makes, whenever it does not give up", () => {
    fc.assert(
      fc.property(value, (any) => {
        const bytes = short(any);
        if (bytes !== undefined) expect(bytes).toEqual(longWay(any));
      }),
      { numRuns: 2000 },
    );
  });

  test("Q1: is taken for records, headers and whatever else is plain", () => {
    const context = {
      note: undefined,
      below: [-1, -40, -200, -40_000, 1.5],
      text: "für 5 € 🎈",
      bytes: new Uint8Array(300),
    };
    for (const plain of [sampleRecord(context), sampleHeader(), { a: { b: [{ c: "d" }] } }, [], "x", 1])
      expect(short(plain)).toEqual(longWay(plain));
  });

  test.each([
    ["a Map", new Map()],
    ["a Date", new Date(0)],
    ["a negative zero", { n: -0 }],
    ["a key that marks tagged values", { $hf: 1 }],
    ["a key that would mislead msgpackr", { toJSON: 1 }],
    ["a key that is a symbol", { [Symbol("s")]: 1 }],
    ["half a surrogate pair", "\uD800"],
    ["half a surrogate pair in a key", { "\uDC00": 1 }],
    ["an array with a property", Object.assign([1], { extra: 1 })],
    ["a function", { f: () => 1 }],
    [
      "an instance",
      new (class Thing {
        readonly field = 1;
      })(),
    ],
    ["a very long text", "x".repeat(20_000)],
  ])("Q2: gives up at %s", (_name, special) => {
    expect(short({ before: 1, special })).toBeUndefined();
  });

  test("Q2: gives up at a cycle and at parts that are shared without end", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    let shared: unknown = [];
    for (let level = 0; level < 60; level += 1) shared = [shared, shared];
    expect(short(cycle)).toBeUndefined();
    expect(short(shared)).toBeUndefined();
  });

  test("Q1: a field that every object of the process inherits is not stored", () => {
    let bytes: unknown = "not tried";
    // oxlint-disable-next-line no-extend-native -- what another library might do is what is tested
    Object.defineProperty(Object.prototype, "inherited", { value: 1, enumerable: true, configurable: true });
    try {
      bytes = short({ a: 1 });
    } finally {
      Reflect.deleteProperty(Object.prototype, "inherited");
    }
    expect(bytes).toEqual(longWay({ a: 1 }));
  });
});
