import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { TestRef, testRefs } from "./testing/test-ref.ts";

const COMPAT = new URL("../../../test/compat/", import.meta.url);
const GOLDEN = new URL("golden/v1/record.hfr", COMPAT);
const codec = createCodec({ ref: testRefs });
const frame = new Uint8Array(await readFile(GOLDEN));
const content: unknown = JSON.parse(await readFile(new URL("golden/v1/record.json", COMPAT), "utf8"));

const python = async (...args: string[]): Promise<{ stdout: string } | undefined> => {
  try {
    return await promisify(execFile)("python3", args);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
};

describe("the golden record of format 1", () => {
  test("is read as its description says", () => {
    expect(JSON.parse(JSON.stringify(described(codec.decodeRecord(frame))))).toStrictEqual(content);
    expect(codec.decodeHeader(frame)).toStrictEqual(codec.decodeRecord(frame).header);
  });

  test("is written again byte for byte", () => {
    const { record, header } = codec.decodeRecord(frame);
    expect(codec.encodeRecord(record, header)).toStrictEqual(frame);
  });

  test("is read by 40 lines of Python", async (context) => {
    const output = await python(fileURLToPath(new URL("read_record.py", COMPAT)), fileURLToPath(GOLDEN));
    if (output === undefined) return context.skip("python3 is not installed");
    expect(JSON.parse(output.stdout)).toStrictEqual(content);
  });
});

const tagged = (...parts: unknown[]): unknown => ({ $hf: parts });

/** The stored form of a decoded value, made without the code under test. */
function described(value: unknown): unknown {
  if (value === undefined) return tagged("undefined");
  if (typeof value === "bigint") return tagged("bigint", value.toString());
  if (Object.is(value, -0)) return tagged("negativeZero");
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(described);
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("hex") };
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return tagged("bytes", value.constructor.name, { $bytes: bytes.toString("hex") });
  }
  if (value instanceof Date) return tagged("date", value.getTime());
  if (value instanceof RegExp) return tagged("regexp", value.source, value.flags);
  if (value instanceof Map)
    return tagged(
      "map",
      [...value].map((entry: unknown[]) => entry.map(described)),
    );
  if (value instanceof Set) return tagged("set", [...value].map(described));
  if (value instanceof TestRef) {
    const { key, id, genesis } = value;
    return tagged("ref", genesis === undefined ? { key, id } : { key, id, genesis });
  }
  if (value instanceof Error) {
    const { name, message, stack } = value;
    const code: unknown = "code" in value ? value.code : undefined;
    return tagged("error", {
      name,
      message,
      ...(code === undefined ? {} : { code }),
      stack,
      ...(Object.hasOwn(value, "cause") ? { cause: described(value.cause) } : {}),
      ...(value instanceof RuntimeFault ? { facts: value.facts } : {}),
    });
  }
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => [key, described(item)]);
  return Object.hasOwn(value, "$hf") ? tagged("map", entries, "object") : Object.fromEntries(entries);
}
