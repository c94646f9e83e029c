import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAll } from "../testing/read-all.ts";
import { draftOf, seeded } from "../testing/seeded-drafts.ts";
import { placeEnvelope } from "../wire/envelope.ts";
import { RunnerJournal } from "./runner-journal.ts";

const SEED = Number(process.env["SEED"] ?? 20_260_809);
const KILLS = process.env["HOLDFAST_FULL"] === "1" ? 200 : 5;
const CHILD = join(import.meta.dirname, "../testing/journal-under-test.ts");
const run = promisify(execFile);
const strace = await run("strace", ["-qq", "-e", "trace=none", "true"]).then(
  () => true,
  () => false,
);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-runner-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));
const file = (): string => join(folder, "journal");
const drawToken = (): string => "parentparentpar1";

/** A journal of `count` envelopes, one write each, and after how many bytes each of them was on disk. */
async function written(count: number): Promise<{ readonly bytes: Buffer; readonly ends: readonly number[] }> {
  const journal = await RunnerJournal.open({ folder, drawToken });
  await journal.bind("c1");
  const ends = [journal.bytes];
  for (let seq = 1; seq <= count; seq += 1) {
    await journal.append(draftOf(seq));
    ends.push(journal.bytes);
  }
  await journal.close();
  return { bytes: await readFile(file()), ends };
}

/** What a runner finds that opens the file as it is now. */
async function reopened(): Promise<{ readonly epoch: number; readonly lastSeq: number; readonly asWritten: boolean }> {
  const journal = await RunnerJournal.open({ folder, drawToken });
  const { envelopes, gaps } = await readAll(journal);
  const asWritten = envelopes.every((envelope, index) => {
    const { seq, epoch, conversation } = envelope;
    const expected = placeEnvelope(draftOf(index + 1), { seq, epoch, conversation });
    return seq === index + 1 && JSON.stringify(expected) === JSON.stringify(envelope);
  });
  await journal.close();
  return { epoch: journal.epoch, lastSeq: envelopes.length, asWritten: asWritten && gaps.length === 0 };
}

describe(`SEED=${SEED}`, () => {
  test("a file that ends at any of 200 bytes of its writes, torn or with a scrambled tail: all that was written is there, nothing else, and the epoch moved", async () => {
    const random = seeded(SEED);
    const { bytes, ends } = await written(60);
    const [start = 0] = ends;
    for (let round = 0; round < 200; round += 1) {
      const cut = start + Math.floor(random() * (bytes.length - start + 1));
      const whole = ends.findLastIndex((end) => end <= cut);
      // After a power loss the rest of the torn write may be anything: nothing, zeros, or bytes of an older file.
      const rest = Buffer.alloc(round % 2 === 0 ? 0 : Math.min((ends[whole + 1] ?? cut) - cut, 64));
      if (round % 4 === 1) for (let index = 0; index < rest.length; index += 1) rest[index] = random() * 256;
      await writeFile(file(), Buffer.concat([bytes.subarray(0, cut), rest]));
      const found = await reopened();
      expect(found, `cut at byte ${cut}`).toEqual({ epoch: 2, lastSeq: whole, asWritten: true });
      expect(await reopened(), "and again").toEqual({ epoch: 3, lastSeq: whole, asWritten: true });
    }
  }, 60_000);

  test("a process that gets SIGKILL at a byte of a write: what it said it may send is there", async () => {
    const random = seeded(SEED + 1);
    const { bytes, ends } = await written(30);
    const [start = 0] = ends;
    const offsets = Array.from({ length: KILLS }, () => start + Math.floor(random() * (bytes.length - start)));
    for (const offset of offsets) {
      await rm(file(), { force: true });
      const child = await childOf([folder, "30", String(offset)]);
      expect(child.signal).toBe("SIGKILL");
      const found = await reopened();
      expect(found, `killed at byte ${offset}`).toMatchObject({ epoch: 2, asWritten: true });
      expect(found.lastSeq).toBe(child.lastSent);
    }
  }, 600_000);

  test("a byte that changed before the end is damage, not a torn end: nothing runs from it and it is kept", async () => {
    const random = seeded(SEED + 2);
    const { bytes, ends } = await written(20);
    for (let round = 0; round < 50; round += 1) {
      const changed = Buffer.from(bytes);
      const at = Math.floor(random() * (ends.at(-2) ?? 0));
      changed[at] = (changed[at] ?? 0) ^ (1 + Math.floor(random() * 255));
      await writeFile(file(), changed);
      await expect(reopened(), `byte ${at}`).rejects.toMatchObject({ code: "HF-2002" });
      expect(await readFile(file())).toEqual(changed);
    }
  });
});

test("a file of a newer format is left alone", async () => {
  const { bytes } = await written(1);
  const text = bytes.toString("latin1").replace('"format":1', '"format":2');
  expect(text).not.toBe(bytes.toString("latin1"));
  await writeFile(file(), withChecksum(Buffer.from(text, "latin1")));
  await expect(reopened()).rejects.toMatchObject({ code: "HF-2003" });
});

test.skipIf(!strace)("every envelope is fsynced before it may be sent, seen in the calls to the system", async () => {
  const trace = join(folder, "trace");
  const calls = "trace=write,pwrite64,fsync,fdatasync";
  const { stdout } = await run("strace", [
    "-f",
    "-qq",
    "-s",
    "32",
    "-o",
    trace,
    "-e",
    calls,
    process.execPath,
    CHILD,
    folder,
    "12",
  ]);
  expect(stdout.match(/^sent/gm)).toHaveLength(12);
  let synced = false;
  let sent = 0;
  for (const line of (await readFile(trace, "utf8")).split("\n")) {
    if (line.includes("pwrite64(")) synced = false;
    if (/(fdatasync|fsync)(\(\d+\)| resumed>\)?)\s*\)?\s*= 0/.test(line)) synced = true;
    if (line.includes('write(1, "sent')) {
      sent += 1;
      expect(synced, line).toBe(true);
    }
  }
  expect(sent).toBe(12);
});

async function childOf(
  args: readonly string[],
): Promise<{ readonly signal: string | null; readonly lastSent: number }> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const signal = await new Promise<string | null>((resolve) => child.once("close", (_code, by) => resolve(by)));
  return { signal, lastSent: Number(/sent (\d+)\n$/.exec(said)?.[1] ?? 0) };
}

/** The first entry with the checksum that its changed text has. */
function withChecksum(bytes: Buffer): Buffer {
  const text = bytes.subarray(12, 12 + bytes.readUInt32BE(4));
  bytes.writeUInt32BE(crc32(text, crc32(bytes.subarray(4, 8))), 8);
  return bytes;
}
