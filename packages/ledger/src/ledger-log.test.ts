import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LedgerFault } from "./ledger-fault.ts";
import { LedgerLog } from "./ledger-log.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ledger-log-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

test("L1, L2: concurrent appends are durable in call order when they resolve", async () => {
  const log = await LedgerLog.open(join(folder, "log"));
  const seen: (readonly string[])[] = [];
  const append = async (text: string) => {
    await log.append(text);
    seen.push(await log.readLines());
  };
  await Promise.all(["a\n", "b\nc\n", "é\n"].map(append));
  expect(seen.at(-1)).toEqual(["a", "b", "c", "é"]);
  expect(seen[0]?.[0]).toBe("a");
  await log.close();
});

test("L4: after the log is closed nothing is accepted, and what was pending is written", async () => {
  const file = join(folder, "log");
  const log = await LedgerLog.open(file);
  const pending = log.append("a\n");
  await log.close();
  await pending;
  await expect(log.append("b\n")).rejects.toBeInstanceOf(LedgerFault);
  const again = await LedgerLog.open(file);
  expect(await again.readLines()).toEqual(["a"]);
  await again.close();
});
