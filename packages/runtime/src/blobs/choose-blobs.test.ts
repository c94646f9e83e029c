import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { withBlobFields, type BlobFields } from "@holdfast/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseBlobs } from "./choose-blobs.ts";
import { isSmall } from "./is-small.ts";

const codec = createCodec({ ref: actorRefExtension });

const leaf = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.double(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, Number.NaN),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 60 }),
);
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(
      fc.string({ maxLength: 20 }).filter((name) => name !== "__proto__"),
      tie("value"),
      { maxKeys: 6 },
    ),
    fc.array(fc.tuple(fc.string(), tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
    fc.array(leaf, { maxLength: 4 }).map((items) => new Set(items)),
  ),
})).value;

/** What a reader makes of a split payload. */
function rejoined(
  rest: Readonly<Record<string, unknown>>,
  blobs: BlobFields,
  bytesOf: ReadonlyMap<string, Uint8Array>,
) {
  const values = Object.entries(blobs).map(
    ([name, { sha256 }]) => [name, codec.decodeValue(bytesOf.get(sha256) ?? new Uint8Array())] as const,
  );
  return withBlobFields(rest, Object.fromEntries(values));
}

describe("what is kept outside of a record", () => {
  test("what counts as small is never larger than the limit when it is stored", () => {
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 2000 }), (each, limitBytes) => {
        if (isSmall(each, limitBytes)) expect(codec.encodeValue(each).length).toBeLessThanOrEqual(limitBytes);
      }),
      { seed: 71, numRuns: 2000 },
    );
  });

  test("the limit lets most values pass without encoding them: text of a quarter of it, a thousand numbers of 128 KiB", () => {
    expect(isSmall({ text: "x".repeat(30_000) }, 131_072)).toBe(true);
    expect(
      isSmall(
        Array.from({ length: 1000 }, (_, n) => n),
        131_072,
      ),
    ).toBe(true);
    expect(isSmall({ text: "x".repeat(131_073) }, 131_072)).toBe(false);
  });

  test("the largest fields go until the rest fits; what comes back is what was there", () => {
    const { outside, chosen } = chooseBlobs(codec);
    const fields = { a: "a".repeat(600), b: "b".repeat(500), c: "c".repeat(300), d: 1 };
    const blobs = outside(fields, 1024) ?? {};
    expect(Object.keys(blobs)).toEqual(["a"]);
    const { a: _outside, ...rest } = fields;
    expect(rejoined(rest, blobs, chosen)).toEqual(fields);
  });

  test("many fields, or one whose name says all, become one blob", () => {
    const { outside, chosen } = chooseBlobs(codec);
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`f${n}`, "x".repeat(100)]));
    for (const fields of [many, { "*": "x".repeat(2000) }]) {
      const blobs = outside(fields, 1024) ?? {};
      expect(Object.keys(blobs)).toEqual(["*"]);
      expect(rejoined({ type: "T" }, blobs, chosen)).toEqual({ type: "T", ...fields });
    }
  });

  test("I4: the same content gives the same reference, whoever names it", () => {
    const fields = { text: "y".repeat(5000), more: [1, 2, 3] };
    expect(chooseBlobs(codec).outside(fields, 1024)).toEqual(chooseBlobs(codec).outside(structuredClone(fields), 1024));
  });

  test("what cannot be stored at all stays, for the record to refuse it with its path", () => {
    expect(chooseBlobs(codec).outside({ text: "x".repeat(5000), run: () => 1 }, 1024)).toBeUndefined();
  });
});
