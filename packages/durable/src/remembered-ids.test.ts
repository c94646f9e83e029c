import { expect, test } from "vitest";
import { digestOf } from "./remembered-ids.ts";

test("what is remembered of an id are the first eight bytes of its SHA-256, whoever hashes it", () => {
  // "abc", of FIPS 180-2.
  const known = Uint8Array.of(0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea);
  expect(digestOf("abc")).toEqual(known);
  expect(digestOf("other", (text) => (text === "other" ? "ba7816bf8f01cfea".padEnd(64, "0") : ""))).toEqual(known);
});
