// LedgerLog — the file: lines in, lines on disk.
// Owns: the file handle and how much of the file is durable.  Does not own: what the lines mean.
//   L1 disk-before-answer  append() resolves once its text, and all text before it, is fsynced
//   L2 call-order          text is written in the order of the append() calls
//   L3 torn-tail           an unfinished last line is cut at opening: nobody was told of it
//   L4 failure-is-final    after a failed write nothing more is written
// Appends that come while an fsync runs share the next one.

import { mkdir, open, readFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { LedgerFault } from "./ledger-fault.ts";

type Pending = { readonly text: string; readonly settle: (failure?: LedgerFault) => void };

/** An open log; see the invariants at the top of the file. One process at a time may hold it. */
export class LedgerLog {
  readonly #file: string;
  readonly #handle: FileHandle;
  #durableBytes: number;
  #pending: Pending[] = [];
  #flushing: Promise<void> | undefined;
  #failure: LedgerFault | undefined;

  private constructor(file: string, handle: FileHandle, durableBytes: number) {
    this.#file = file;
    this.#handle = handle;
    this.#durableBytes = durableBytes;
  }

  /**
   * Opens or creates the log and its folder.
   *
   * @throws LedgerFault (`cannot-write`) when the file cannot be opened
   */
  static async open(file: string): Promise<LedgerLog> {
    try {
      await mkdir(dirname(file), { recursive: true });
      const handle = await open(file, "a+");
      const bytes = await readFile(file);
      const durableBytes = bytes.lastIndexOf("\n") + 1;
      await handle.truncate(durableBytes);
      await handle.sync();
      await syncFolder(dirname(file));
      return new LedgerLog(file, handle, durableBytes);
    } catch (cause) {
      throw cannotWrite(file, cause);
    }
  }

  /**
   * Appends text that ends with a line feed (L1, L2).
   *
   * @throws LedgerFault (`cannot-write`) when it may not be on disk (L4)
   */
  async append(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const settle = (failure?: LedgerFault) => (failure === undefined ? resolve() : reject(failure));
      this.#pending.push({ text, settle });
      this.#flushing ??= this.#flush();
    });
  }

  /** The lines that are durable, oldest first, without their line feeds. */
  async readLines(): Promise<readonly string[]> {
    const length = this.#durableBytes;
    const text = (await readFile(this.#file)).subarray(0, length).toString("utf8");
    return text.split("\n").slice(0, -1);
  }

  /** Writes what is pending, then closes the file. */
  async close(): Promise<void> {
    await this.#flushing;
    this.#failure ??= cannotWrite(this.#file, new Error("the log is closed"));
    await this.#handle.close();
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      await this.#write(batch.map((entry) => entry.text).join(""));
      for (const entry of batch) entry.settle(this.#failure);
    }
    this.#flushing = undefined;
  }

  async #write(text: string): Promise<void> {
    if (this.#failure !== undefined) return;
    try {
      await this.#handle.appendFile(text);
      await this.#handle.sync();
      this.#durableBytes += Buffer.byteLength(text);
    } catch (cause) {
      this.#failure = cannotWrite(this.#file, cause);
    }
  }
}

// Without it a new file may vanish at power loss although its content was fsynced.
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function cannotWrite(file: string, cause: unknown): LedgerFault {
  return new LedgerFault(
    "cannot-write",
    `The ledger cannot write ${file}. Check the folder and the disk, then start the ledger again.`,
    cause,
  );
}
