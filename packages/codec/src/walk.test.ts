import assert from "node:assert/strict";
import { ActorAddress, actorRefExtension } from "@holdfast/durable";
import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { caught } from "./testing/caught.ts";
import { TestRef, testRefs } from "./testing/test-ref.ts";
import { createWalk, MAX_VALUE_DEPTH } from "./walk.ts";

const codec = createCodec({ ref: testRefs });
const walk = createWalk(testRefs);
const through = (value: unknown): unknown => codec.decodeValue(codec.encodeValue(value));
const withKey = (key: string, value: unknown): unknown =>
  Object.defineProperty({}, key, { value, enumerable: true, configurable: true, writable: true });
const nested = (levels: number): unknown => {
  let value: unknown = "leaf";
  for (let level = 0; level < levels; level += 1) value = { in: value };
  return value;
};
class Money {
  readonly amount = 1;
}
class Ids extends Array<string> {}
class Counters extends Map<string, number> {}

describe("what is stored comes back as it was", () => {
  const ref = new TestRef({ key: "d-1.task.t1", id: "t1", genesis: "g1:9" });
  const sparse: unknown[] = [1];
  sparse[2] = 3;
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["undefined as a property and as an item", { a: undefined, b: [undefined, 1] }],
    ["null", null],
    ["-0", [-0, 0]],
    ["NaN and the infinities", [Number.NaN, Infinity, -Infinity]],
    [
      "whole numbers around 2^31, 2^32, 2^53",
      [-(2 ** 31), 2 ** 31, 2 ** 32, -(2 ** 53), 2 ** 53 + 2, 2 ** 63, 2 ** 64],
    ],
    ["small bigints, which stay bigints", [0n, 5n, -1n, 2n ** 31n]],
    ["bigints around 64 bits", [2n ** 63n, -(2n ** 63n), 2n ** 64n - 1n, 2n ** 64n, -(2n ** 64n), 10n ** 40n]],
    ["Date", [new Date(0), new Date(1_790_000_000_123), new Date(-1), new Date("nonsense")]],
    [
      "Map with keys of any kind",
      new Map<unknown, unknown>([
        ["a", 1],
        [1, "b"],
        [{ deep: new Set([1n]) }, new Map()],
      ]),
    ],
    ["Set", new Set<unknown>(["a", 1, [2], new Set([undefined])])],
    ["RegExp", [/a.b/giu, /[/]\n/, new RegExp("")]],
    ["bytes", Uint8Array.from([0, 127, 128, 255])],
    ["typed arrays", [new Float64Array([1.5, -0]), new Int16Array([-2, 3]), new BigUint64Array([2n ** 64n - 1n])]],
    ["the view of a typed array, and only it", new Int32Array(Int32Array.from([1, 2, 3, 4]).buffer, 4, 2)],
    ["empty things", [{}, [], "", new Map(), new Set(), new Uint8Array(), new Float32Array()]],
    ["an actor reference", { parent: ref, again: [ref] }],
    ["an object whose key is the mark of tagged values", { $hf: ["undefined"], other: { $hf: 1 } }],
    [
      "keys that msgpackr looks at",
      [{ constructor: 1, toJSON: 5 }, { toJSON: undefined }, { hasOwnProperty: 1, valueOf: -0 }],
    ],
    ["a key that only looks like __proto__", { __proto_: 1, x__proto__: 2 }],
    [
      "more keys than a 16-bit map holds",
      Object.fromEntries(Array.from({ length: 65_600 }, (_, index) => [`k${index}`, index])),
    ],
    ["long text beyond ASCII", ["ä€😀".repeat(5_000), "\u0000", "\uFFFD"]],
    [
      "text and keys that begin with U+FEFF",
      { [`\uFEFF${"k".repeat(80)}`]: `\uFEFF${"v".repeat(80)}`, short: "\uFEFFa" },
    ],
    ["the deepest value", nested(MAX_VALUE_DEPTH)],
  ])("%s", (_, value) => {
    expect(through(value)).toStrictEqual(value);
  });

  test("holes of an array come back as undefined", () => {
    expect(through(sparse)).toStrictEqual([1, undefined, 3]);
  });

  test("an object without prototype comes back as a plain object", () => {
    const bare: Record<string, unknown> = Object.assign(Object.create(null), { a: 1, toJSON: "x" });
    expect(through({ bare })).toStrictEqual({ bare: { a: 1, toJSON: "x" } });
  });

  test("a Buffer comes back as a Uint8Array", () => {
    expect(through(Buffer.from("abc"))).toStrictEqual(Uint8Array.from([97, 98, 99]));
  });

  test("an actor reference is made by the extension, methods and all", () => {
    const back = through(ref);
    assert(back instanceof TestRef);
    expect(back.send()).toBe("sent to d-1.task.t1");
  });
});

test("the references of durable come back as such", () => {
  const codec = createCodec({ ref: actorRefExtension });
  const value = {
    parent: new ActorAddress("d-9.group.g1", "g1"),
    child: [new ActorAddress("d-1.task.t1", "t1", "g1:9")],
  };
  expect(codec.decodeValue(codec.encodeValue(value))).toStrictEqual(value);
});

describe("errors", () => {
  test("keep class, name, message, code, stack and cause", () => {
    const original = Object.assign(new TypeError("bad input", { cause: new Map([["at", new RangeError("inner")]]) }), {
      code: "EBAD",
    });
    const back = through(original);
    assert(back instanceof TypeError);
    expect(back).toStrictEqual(original);
    expect(back.stack).toBe(original.stack);
  });

  test("of a user's class keep their name and are Errors", () => {
    class PaymentError extends Error {
      override readonly name = "PaymentError";
    }
    const back = through(new PaymentError("declined"));
    assert(back instanceof Error);
    expect([back.name, back.message, String(back)]).toStrictEqual([
      "PaymentError",
      "declined",
      "PaymentError: declined",
    ]);
  });

  test("with a cause that is undefined keep it", () => {
    expect(Object.hasOwn(through(new Error("x", { cause: undefined })) ?? {}, "cause")).toBe(true);
    expect(Object.hasOwn(through(new Error("x")) ?? {}, "cause")).toBe(false);
  });

  test("that are RuntimeFaults come back as RuntimeFaults", () => {
    const original = new RuntimeFault("HF-3005", "Actor x: busy", { facts: { waiting: 64 }, cause: new Error("why") });
    const back = through(original);
    assert(back instanceof RuntimeFault);
    expect(back).toStrictEqual(original);
    expect([back.next, back.facts]).toStrictEqual(["retry", { waiting: 64 }]);
  });

  test("with a code this build does not know come back as Errors with that code", () => {
    const original = Object.assign(new RuntimeFault("HF-3005", "later"), { code: "HF-9999" });
    const back = through(original);
    assert(back instanceof Error && !(back instanceof RuntimeFault));
    assert(Object.entries(back).some(([name, value]) => name === "code" && value === "HF-9999"));
  });

  test("without a stack do not get the decoder's", () => {
    const original = new Error("x");
    delete original.stack;
    const back = through(original);
    assert(back instanceof Error);
    expect(back.stack).toBeUndefined();
  });

  test("with half a character in their texts are repaired, not refused", () => {
    const original = Object.assign(new Error("cut \uD83D"), { name: "\uDE00", stack: "at \uD83D" });
    expect(walk(original, "Value")).toStrictEqual({
      $hf: ["error", { name: "\uFFFD", message: "cut \uFFFD", stack: "at \uFFFD" }],
    });
  });
});

describe("W2: what would not come back is refused with its path", () => {
  const cycle: { context: { list: unknown[] } } = { context: { list: [] } };
  cycle.context.list.push({ back: cycle.context });
  test.each<[string, unknown, string, string]>([
    ["a function", { context: { a: { b: [() => 1] } } }, "a function", "context.a.b[0]"],
    ["a symbol", [Symbol("s")], "a symbol", "[0]"],
    ["a class instance", { context: { price: new Money() } }, "an instance of Money", "context.price"],
    ["a subclass of Array", { ids: new Ids() }, "an instance of Ids", "ids"],
    ["a subclass of Map", { c: new Counters() }, "an instance of Counters", "c"],
    ["a promise", { p: Promise.resolve() }, "an instance of Promise", "p"],
    ["an ArrayBuffer", { b: new ArrayBuffer(1) }, "an instance of ArrayBuffer", "b"],
    ["a boxed string", { s: Object("s") }, "an instance of String", "s"],
    ["a cycle", cycle, "a cycle", "context.list[0].back"],
    [
      "too many levels",
      nested(MAX_VALUE_DEPTH + 1),
      "more than 100 levels",
      Array.from({ length: 100 }, () => "in").join("."),
    ],
    ["a key named __proto__", { a: withKey("__proto__", 1) }, "a key named __proto__", "a.__proto__"],
    ["a key that is a symbol", { a: { [Symbol("k")]: 1 } }, "a key that is a symbol", "a"],
    ["half a surrogate pair", { text: "cut \uD83D" }, "a string with half a surrogate pair", "text"],
    ["half a surrogate pair in a key", { "\uDE00": 1 }, "a key with half a surrogate pair", '["\\ude00"]'],
    [
      "a named property of an array",
      { m: /b/.exec("abc") },
      "a property of an array that is not one of its items",
      "m.groups",
    ],
    ["a function in a Map", { m: new Map([["k", () => 1]]) }, "a function", 'm.get("k")'],
    ["a function as the key of a Map", { m: new Map([[() => 1, 1]]) }, "a function", "m.key(#0)"],
    ["a function under another key of a Map", { m: new Map([[{}, () => 1]]) }, "a function", "m.value(#0)"],
    ["a function in a Set", { s: new Set([1, () => 1]) }, "a function", "s.item(#1)"],
    ["a function behind an odd key", { "a b": { "": () => 1 } }, "a function", '["a b"][""]'],
    ["a function as the cause of an error", { e: new Error("x", { cause: () => 1 }) }, "a function", "e.cause"],
    ["a function alone", () => 1, "a function", "(the value itself)"],
  ])("%s", (_, value, found, path) => {
    const fault = caught(() => codec.encodeValue(value));
    expect(fault.code).toBe("HF-2001");
    expect(fault.facts).toStrictEqual({ path, found });
    expect(fault.message).toContain(`${found} at ${path}`);
  });

  test("long keys are cut in the message", () => {
    const fault = caught(() => codec.encodeValue({ ["k".repeat(10_000)]: () => 1 }));
    expect(fault.message.length).toBeLessThan(600);
  });

  test("a refusal leaves nothing behind for the next value", () => {
    caught(() => codec.encodeValue(cycle));
    expect(through({ a: [1] })).toStrictEqual({ a: [1] });
  });
});

describe("W1: the walk copies only what it must", () => {
  test("a value without anything special is the same object", () => {
    const value = { a: [1, { b: "x" }], bytes: new Uint8Array(2), none: null };
    expect(walk(value, "Value")).toBe(value);
  });

  test("only the way to a special value is copied, and nothing is changed", () => {
    const value = Object.freeze({
      same: Object.freeze({ x: 1 }),
      other: Object.freeze([Object.freeze({ y: undefined })]),
    });
    const plain = walk(value, "Value");
    expect(plain).toStrictEqual({ same: { x: 1 }, other: [{ y: { $hf: ["undefined"] } }] });
    assert(typeof plain === "object" && plain !== null && "same" in plain);
    expect(plain.same).toBe(value.same);
    expect(value.other[0]).toStrictEqual({ y: undefined });
  });
});

test("W3: structures that are shared on ever more ways are refused instead of hanging", () => {
  let value: unknown = {};
  for (let level = 0; level < 40; level += 1) value = [value, value];
  expect(caught(() => codec.encodeValue(value)).facts["found"]).toBe("more than 1000000 arrays and objects");
});

test("a value shared on two ways is stored twice", () => {
  const shared = { n: 1 };
  expect(through([shared, shared])).toStrictEqual([{ n: 1 }, { n: 1 }]);
});
