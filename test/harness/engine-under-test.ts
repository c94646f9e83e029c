// An engine that says a thousand things as fast as it can, and ends with its input.

import { once } from "node:events";
import { createInterface } from "node:readline";
import { draftOf } from "@holdfast/runner/testing";

const LAST = 1000;
const say = async (line: object): Promise<void> => {
  if (!process.stdout.write(`${JSON.stringify(line)}\n`)) await once(process.stdout, "drain");
};

const input = createInterface({ input: process.stdin });
input.on("close", () => process.exit(0));
input.on("line", (line) => void take(line));
process.stdout.on("error", () => process.exit(0));

async function take(line: string): Promise<void> {
  if (line.includes('"start"')) return say({ op: "ready" });
  // Place 1 is the runner's own.
  for (let seq = 2; seq <= LAST; seq += 1) await say(draftOf(seq));
}
