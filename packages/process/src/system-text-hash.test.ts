import { sha256Hex } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { systemTextHash } from "./system-text-hash.ts";

test("the system's hash of a text is that of the pure library, whatever the text holds", () => {
  const encoder = new TextEncoder();
  const texts = ["", "abc", "ÄöΩ漢字", "😀", "half \ud83d of a pair", "\u0000\n", "x".repeat(1000)];
  for (const text of texts) expect(systemTextHash(text)).toBe(sha256Hex(encoder.encode(text)));
});
