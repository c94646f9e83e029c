import { describe, expect, test } from "vitest";
import { mismatchOf } from "./json-schema-subset.ts";

const strict = { allowUnknownKeys: false };

describe("mismatchOf", () => {
  test.each([
    [{ type: "string" }, "a"],
    [{ type: ["string", "null"] }, null],
    [{ type: "number" }, 3],
    [{ type: "number" }, 3.5],
    [{ type: "integer" }, 3],
    [{ enum: ["a", 1, { x: 1 }] }, { x: 1 }],
    [{ minLength: 1, maxLength: 2 }, "ab"],
    [{ minimum: 1, maximum: 2 }, 2],
    [{ type: "array", items: { type: "string" }, minItems: 1, maxItems: 2 }, ["a", "b"]],
    [
      { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
      { a: "x", more: 1 },
    ],
    [{ type: "object", properties: { toString: { type: "string" } } }, {}],
    [{}, { anything: [1] }],
    [{ pattern: "^x" }, "not looked at"],
  ])("%j takes %j", (schema, value) => {
    expect(mismatchOf(schema, value, strict)).toBeUndefined();
  });

  test.each([
    [{ type: "string" }, 1, "value must be string, found integer"],
    [{ type: "integer" }, 1.5, "value must be integer, found number"],
    [{ type: "object" }, [], "value must be object, found array"],
    [{ type: "object" }, null, "value must be object, found null"],
    [{ enum: ["a", "b"] }, "c", 'value must be one of "a", "b"'],
    [{ minLength: 1 }, "", "value has 0 characters, at least 1 expected"],
    [{ maximum: 2 }, 3, "value is 3, at most 2 expected"],
    [{ minItems: 1 }, [], "value has 0 items, at least 1 expected"],
    [{ items: { type: "string" } }, ["a", 1], "value[1] must be string, found integer"],
    [{ required: ["a"] }, {}, "value.a is missing"],
    [
      { properties: { a: { properties: { b: { type: "null" } } } } },
      { a: { b: 1 } },
      "value.a.b must be null, found integer",
    ],
    [{ additionalProperties: false }, { a: 1 }, "value.a is not expected"],
  ])("%j does not take %j", (schema, value, problem) => {
    expect(mismatchOf(schema, value, strict)).toBe(problem);
  });

  test("keys that are not described may be allowed", () => {
    expect(mismatchOf({ additionalProperties: false }, { a: 1 }, { allowUnknownKeys: true })).toBeUndefined();
  });
});
