import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { caught } from "./testing/caught.ts";
import { testRefs } from "./testing/test-ref.ts";

const codec = createCodec({ ref: testRefs });
const text = (value: string): number[] => [0xd9, value.length, ...new TextEncoder().encode(value)];
const refusal = (...bytes: number[]): string => {
  const fault = caught(() => codec.decodeValue(Uint8Array.from(bytes)));
  expect(fault.code).toBe("HF-2002");
  return fault.message;
};

describe("S1, S3: bytes that are not one whole value", () => {
  test.each<[string, number[], string]>([
    ["nothing", [], "the bytes end before the value does (byte 0)"],
    ["two values", [0x01, 0x02], "1 bytes are left over (byte 1)"],
    ["a cut number", [0xcb, 0, 0], "the bytes end before the value does"],
    ["a cut length", [0xda, 1], "the bytes end before the value does"],
    ["text of 4 GiB", [0xdb, 0xff, 0xff, 0xff, 0xff, 0x61], "the bytes end before the value does"],
    ["bytes of 4 GiB", [0xc6, 0xff, 0xff, 0xff, 0xff, 0x61], "the bytes end before the value does"],
    ["an array of 4 billion items", [0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0], "the bytes end before the value does"],
    ["a map of 4 billion entries", [0xdf, 0xff, 0xff, 0xff, 0xff, 0xa0, 0xc0], "the bytes end before the value does"],
    ["nested arrays that each claim what is left", [0xdc, 0, 6, 0xdc, 0, 4, 0x90, 0x90, 0x90], "the bytes end before"],
    ["100,000 levels", Array.from({ length: 100_000 }, () => 0x91), "more than 408 levels"],
    ["the byte that is not msgpack", [0x91, 0xc1], "the byte 0xc1 is not msgpack (byte 1)"],
  ])("%s", (_, bytes, reason) => {
    expect(refusal(...bytes)).toContain(reason);
  });
});

describe("S2: extension types, of which msgpackr would build something", () => {
  test.each<[string, number[]]>([
    ["undefined", [0xd4, 0x00, 0x00]],
    ["a timestamp", [0xd6, 0xff, 0, 0, 0, 1]],
    ["an error", [0xd4, 0x65, 0, 0x93, 0xa1, 0x41, 0xa1, 0x42, 0xc0]],
    ["a set", [0xd4, 0x73, 0, 0x91, 1]],
    ["a regular expression", [0xd4, 0x78, 0, 0x92, 0xa1, 0x61, 0xa0]],
    ["a bigint", [0xc7, 1, 0x42, 5]],
    ["a typed array", [0xc7, 2, 0x74, 1, 5]],
    ["a record definition, which compiles code", [0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 1]],
    ["a string bundle", [0xd6, 0x62, 0, 0, 0, 4, 0xa0, 0xa0]],
    ["an array that holds itself", [0xd6, 0x69, 0, 0, 0, 1, 0x91, 0xd6, 0x70, 0, 0, 0, 1]],
    ["an unknown one", [0xd5, 0x11, 1, 2]],
  ])("%s", (_, bytes) => {
    expect(refusal(...bytes)).toContain("an extension type (byte 0)");
  });

  test("pointers that multiply to 2^30 values are refused at once, also with bytes left over", () => {
    // Each level names an array of two pointers to the level before it; msgpackr alone would print all of them into its message.
    const levels = Array.from({ length: 30 }, (_, level) => [
      0xd6,
      0x69,
      0,
      0,
      0,
      level + 1,
      0x92,
      ...(level === 0 ? [1, 2] : [0xd6, 0x70, 0, 0, 0, level, 0xd6, 0x70, 0, 0, 0, level]),
    ]);
    expect(refusal(0xdc, 0, levels.length, ...levels.flat(), 0xc0)).toContain("an extension type");
  });
});

describe("S4: keys", () => {
  test.each<[string, number[]]>([
    ["fixstr", [0xa9]],
    ["str 8", [0xd9, 9]],
    ["str 16", [0xda, 0, 9]],
    ["str 32", [0xdb, 0, 0, 0, 9]],
  ])("named __proto__ are refused, as %s", (_, head) => {
    const key = [...head, ...new TextEncoder().encode("__proto__")];
    expect(refusal(0x81, ...key, 0x81, 0xa1, 0x61, 1)).toContain("a key named __proto__ (byte 1)");
    expect(Object.hasOwn(Object.prototype, "a")).toBe(false);
  });

  test("that only contain that name are fine", () => {
    expect(codec.decodeValue(Uint8Array.from([0x81, ...text("x__proto__"), 1]))).toStrictEqual({ x__proto__: 1 });
  });

  test.each<[string, number[]]>([
    ["a number", [1]],
    ["nil", [0xc0]],
    ["bytes", [0xc4, 1, 0x61]],
    ["an array", [0x90]],
  ])("that are %s are refused", (_, key) => {
    expect(refusal(0x81, ...key, 1)).toContain("a key that is not a string");
  });

  test("named like members of objects are data", () => {
    const value = codec.decodeValue(Uint8Array.from([0x82, ...text("constructor"), 1, ...text("toString"), 2]));
    expect(Object.entries(value ?? {})).toStrictEqual([
      ["constructor", 1],
      ["toString", 2],
    ]);
  });
});

describe("U3: tagged values that are not as the contract says", () => {
  test.each<[string, unknown]>([
    ["no array", { $hf: "undefined" }],
    ["no tag", { $hf: [] }],
    ["an unknown tag", { $hf: ["function", "x"] }],
    ["a tag beside other keys", { a: 1, $hf: ["undefined"] }],
    ["a bigint that is none", { $hf: ["bigint", "1e3"] }],
    ["an empty bigint", { $hf: ["bigint", ""] }],
    ["a date that is none", { $hf: ["date", "2026"] }],
    ["a map without entries", { $hf: ["map", 1] }],
    ["a map with half an entry", { $hf: ["map", [[1]]] }],
    ["an object with another key", { $hf: ["map", [[1, 2]], "object"] }],
    ["an object with the key __proto__", { $hf: ["map", [["__proto__", { polluted: 1 }]], "object"] }],
    ["a set that is none", { $hf: ["set", {}] }],
    ["an error without a name", { $hf: ["error", { message: "x" }] }],
    ["an error with another stack", { $hf: ["error", { name: "Error", message: "x", stack: 1 }] }],
    ["an error that is none", { $hf: ["error", "x"] }],
    ["a regular expression with a wrong source", { $hf: ["regexp", "(", ""] }],
    ["a regular expression with wrong flags", { $hf: ["regexp", "a", "zz"] }],
    ["a typed array of unknown kind", { $hf: ["bytes", "Array", Uint8Array.from([1])] }],
    ["a typed array of half an element", { $hf: ["bytes", "Int16Array", Uint8Array.from([1])] }],
    ["a typed array without bytes", { $hf: ["bytes", "Int16Array", [1, 2]] }],
    ["a reference without an id", { $hf: ["ref", { key: "k" }] }],
    ["a reference with another genesis", { $hf: ["ref", { key: "k", id: "i", genesis: 1 }] }],
    ["a reference that is none", { $hf: ["ref", "k"] }],
  ])("%s", (_, value) => {
    expect(refusal(0x81, 0xa1, 0x61, ...plainBytes(value))).toMatch(/ at a(\.\$hf)?\. /);
    const asInput = caught(() => codec.decodeEnvelope(Uint8Array.from([0x81, 0xa1, 0x61, ...plainBytes(value)])));
    expect(asInput.code).toBe("HF-1001");
  });

  test("a reference that its own room refuses is a typed fault too", () => {
    const refusing = createCodec({
      ref: {
        ...testRefs,
        decode: () => {
          throw new TypeError("no such actor");
        },
      },
    });
    const bytes = Uint8Array.from(plainBytes({ $hf: ["ref", { key: "k", id: "i" }] }));
    expect(caught(() => refusing.decodeValue(bytes)).code).toBe("HF-2002");
  });
});

describe("whole numbers beyond 32 bits as other languages write them", () => {
  test("are numbers while that is exact", () => {
    const bytes = Uint8Array.from([
      0x92,
      0xcf,
      0,
      0,
      1,
      0xa0,
      0xc4,
      0x0e,
      0xb8,
      0,
      0xd3,
      ...Array.from({ length: 8 }, () => 0xff),
    ]);
    expect(codec.decodeValue(bytes)).toStrictEqual([1_789_995_694_080, -1]);
  });

  test("and bigints beyond", () => {
    expect(codec.decodeValue(Uint8Array.from([0xcf, ...Array.from({ length: 8 }, () => 0xff)]))).toBe(2n ** 64n - 1n);
  });
});

/** msgpack of values without anything special, as another language's library would write it. */
function plainBytes(value: unknown): number[] {
  if (typeof value === "string") return text(value);
  if (typeof value === "number") return [value];
  if (value instanceof Uint8Array) return [0xc4, value.length, ...value];
  if (Array.isArray(value)) return [0x90 | value.length, ...value.flatMap(plainBytes)];
  const entries = Object.entries(value ?? {});
  return [0x80 | entries.length, ...entries.flatMap(([key, item]) => [...text(key), ...plainBytes(item)])];
}
