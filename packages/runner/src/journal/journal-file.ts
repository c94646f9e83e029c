// JournalFile — bytes that grow at the end, one whole entry at a time.
// Owns: the file handle and how much of the file is on disk.  Does not own: what the bytes mean.
//   F1 disk-before-return  `append` and `replace` return once the bytes, and the name of the file, are fsynced
//   F2 one-at-a-time       the caller waits for one write before the next, so only the last entry can be torn
//   F3 failure-is-final    after a failed write nothing more is written: how much of it arrived is not known
//   F4 whole-or-old        a replaced file is the new one or the old one, never a mixture

import { mkdir, open, readFile, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { RunnerFault } from "../runner-fault.ts";

export interface OpenedFile {
  readonly file: JournalFile;
  /** What is in it; empty when there was none. */
  readonly bytes: Buffer;
}

/** See the invariants at the top of the file. One process at a time may hold the folder. */
export class JournalFile {
  readonly #folder: string;
  #handle: FileHandle;
  #size: number;
  #failure: RunnerFault | undefined;

  private constructor(folder: string, handle: FileHandle, size: number) {
    this.#folder = folder;
    this.#handle = handle;
    this.#size = size;
  }

  /**
   * Opens the journal of a folder, or begins one with `first` when the folder has none.
   *
   * @throws RunnerFault HF-9004 when the folder cannot be written
   */
  static async open(folder: string, first: () => Buffer): Promise<OpenedFile> {
    return guarded(folder, async () => {
      await mkdir(folder, { recursive: true });
      await rm(nextPath(folder), { force: true });
      const found = await readIfThere(journalPath(folder));
      if (found === undefined) await putInPlace(folder, [first()]);
      const bytes = found ?? (await readFile(journalPath(folder)));
      return { file: new JournalFile(folder, await open(journalPath(folder), "r+"), bytes.length), bytes };
    });
  }

  /** Bytes of the file, all of them on disk. */
  get size(): number {
    return this.#size;
  }

  /** Cuts a torn end off (F2). */
  async truncate(size: number): Promise<void> {
    await this.#write(async () => {
      await this.#handle.truncate(size);
      await this.#handle.sync();
      this.#size = size;
    });
  }

  /** @returns where `bytes` begin. @throws RunnerFault HF-9004 when they may not be on disk (F1, F3) */
  async append(bytes: Buffer): Promise<number> {
    const offset = this.#size;
    await this.#write(async () => {
      let written = 0;
      while (written < bytes.length) {
        const part = await this.#handle.write(bytes, written, bytes.length - written, offset + written);
        written += part.bytesWritten;
      }
      await this.#handle.datasync();
      this.#size = offset + bytes.length;
    });
    return offset;
  }

  /** Reads what was written; may run beside `append`, and began before a `replace` that overtakes it. */
  async read(offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await this.#handle.read(bytes, 0, length, offset);
    return bytes.subarray(0, bytesRead);
  }

  /** Puts another file in the place of this one (F4). `swapped` runs in the same step in which reads begin to see the new one. */
  async replace(parts: readonly Buffer[], swapped: () => void): Promise<void> {
    await this.#write(async () => {
      await putInPlace(this.#folder, parts);
      const handle = await open(journalPath(this.#folder), "r+");
      const old = this.#handle;
      this.#handle = handle;
      this.#size = parts.reduce((sum, part) => sum + part.length, 0);
      swapped();
      await old.close();
    });
  }

  async close(): Promise<void> {
    this.#failure ??= cannotWrite(this.#folder, new Error("the journal is closed"));
    await this.#handle.close();
  }

  async #write(work: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      await work();
    } catch (cause) {
      this.#failure = cannotWrite(this.#folder, cause);
      throw this.#failure;
    }
  }
}

const journalPath = (folder: string): string => join(folder, "journal");
const nextPath = (folder: string): string => join(folder, "journal.next");

async function putInPlace(folder: string, parts: readonly Buffer[]): Promise<void> {
  const handle = await open(nextPath(folder), "w");
  try {
    for (const part of parts) await handle.appendFile(part);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(nextPath(folder), journalPath(folder));
  // Without it the name may be gone after a power loss although the content is there.
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function guarded<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cannotWrite(folder, cause);
  }
}

const cannotWrite = (folder: string, cause: unknown): RunnerFault =>
  new RunnerFault(
    "HF-9004",
    `Journal of a runner in ${folder}: it cannot be written. Nothing more is sent, since nothing more would survive a crash; check the folder and the disk, then start the runner again.`,
    { facts: { folder }, cause },
  );
