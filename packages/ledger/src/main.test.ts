import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { countLedgerFile } from "./count-ledger.ts";

const running = new Set<ChildProcess>();
let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ledger-main-"));
  file = join(folder, "ledger.jsonl");
});
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
  await rm(folder, { recursive: true });
});

function start(environment: Record<string, string>, shell = 'exec "$0" "$1"') {
  const main = new URL("./main.ts", import.meta.url).pathname;
  const child = spawn("/bin/sh", ["-c", shell, process.execPath, main], {
    env: { ...process.env, ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

async function urlOf(child: { readonly stdout: Readable }): Promise<string> {
  const [line] = z.tuple([z.string()]).parse(await once(createInterface(child.stdout), "line"));
  return z.object({ url: z.url() }).parse(JSON.parse(line)).url;
}

async function effect(url: string, key: string, kind = "mail"): Promise<unknown> {
  const body = JSON.stringify({ callId: `call of ${key}`, idempotencyKey: key, kind });
  return (await fetch(`${url}/effects`, { method: "POST", body })).json();
}

test("L1: what was answered survives a kill in the middle of the load, and is not applied again", async () => {
  const child = start({ LEDGER_FILE: file });
  const url = await urlOf(child);
  const answered: string[] = [];
  const load = Array.from({ length: 40 }, async (_, n) => {
    for (let round = 0; ; round += 1) {
      const key = `k${n}-${round}`;
      await effect(url, key);
      answered.push(key);
      if (answered.length === 200) child.kill("SIGKILL");
    }
  });
  await Promise.allSettled(load);
  expect(answered.length).toBeGreaterThanOrEqual(200);

  const again = await urlOf(start({ LEDGER_FILE: file }));
  for (const key of answered.slice(-20)) expect(await effect(again, key)).toMatchObject({ applied: false });
  const figures = await countLedgerFile(file);
  expect(figures.applied).toBeGreaterThanOrEqual(answered.length);
  expect(figures.duplicateEffects).toBe(0);
});

test("L4: after a write failed every effect is refused, and a restart counts what was answered", async () => {
  // The shell's limit on file sizes fails a write as a full disk does: half written.
  const child = start({ LEDGER_FILE: file }, 'ulimit -f 8; exec "$0" "$1"');
  const url = await urlOf(child);
  const refused = { error: { message: expect.stringContaining("cannot write") } };
  expect(await effect(url, "k1")).toMatchObject({ applied: true });
  expect(await effect(url, "k2", "x".repeat(10_000))).toEqual(refused);
  const [attempt, applied] = (await readFile(file, "utf8")).split("\n");
  const answered = `${attempt}\n${applied}\n`;
  // There is room again, but the ledger no longer knows what is on disk.
  await truncate(file, answered.length);
  expect(await effect(url, "k3")).toEqual(refused);
  expect(await readFile(file, "utf8")).toBe(answered);
  child.kill("SIGKILL");

  const again = await urlOf(start({ LEDGER_FILE: file }));
  expect(await countLedgerFile(file)).toMatchObject({ attempts: 1, applied: 1 });
  expect(await effect(again, "k1")).toMatchObject({ applied: false });
  expect(await effect(again, "k2")).toMatchObject({ applied: true });
});

test("exits with 0 on SIGTERM although a poll is open", async () => {
  const child = start({ LEDGER_FILE: file, LEDGER_PLANT: "duplicate" });
  const url = await urlOf(child);
  const poll = fetch(`${url}/wait?attempts=9`);
  await effect(url, "k");
  expect(await countLedgerFile(file)).toMatchObject({ applied: 2 });
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await expect(poll).rejects.toThrow("fetch failed");
  expect(await exit).toEqual([0, null]);
});

test("exits when its standard input closes, if told so", async () => {
  const child = start({ LEDGER_FILE: file, LEDGER_EXIT_WITH_STDIN: "1" });
  await urlOf(child);
  const exit = once(child, "exit");
  child.stdin.end();
  expect(await exit).toEqual([0, null]);
});

test.each([
  [{}, "LEDGER_FILE"],
  [{ LEDGER_FILE: "x", LEDGER_PLANT: "y" }, "LEDGER_PLANT"],
])("refuses a missing or bad environment variable by name (%#)", async (environment, name) => {
  const child = start(environment);
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => {
    stderr += data.toString();
  });
  const [code] = await once(child, "close");
  expect(code).toBe(1);
  expect(stderr).toContain(`The environment variable ${name} is missing or not valid`);
});
