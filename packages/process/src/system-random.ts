import { randomBytes, randomFillSync } from "node:crypto";
import type { Random } from "@holdfast/runtime/ports";

/** Random bytes from the operating system, drawn in blocks: a token is needed for every commit. */
export function createSystemRandom(): Random {
  const block = randomBytes(4096);
  let used = 0;
  return {
    hex(bytes) {
      if (used + bytes > block.length) {
        randomFillSync(block);
        used = 0;
      }
      used += bytes;
      return block.toString("hex", used - bytes, used);
    },
  };
}
