import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { z } from "zod";
import { ConfinedFolder, resolvePath, type ConfinedRoot } from "./confined-folder.ts";
import type { ToolDescription } from "./define-tool.ts";
import { systemFault, unreadableFault } from "./file-fault.ts";
import { quoted, ToolFault } from "./tool-fault.ts";

const Input = z.object({
  path: z.string().min(1).max(4096).describe("File relative to the root, as list_files gives it."),
});

export const READ_FILE = {
  name: "read_file",
  description:
    "Reads a text file (UTF-8). When truncated is true, text is only its beginning. Files that are too large or no text are refused.",
  input: Input,
  crashPolicy: "idempotent",
} as const satisfies ToolDescription<typeof Input>;

export interface FileText {
  readonly path: string;
  readonly text: string;
  /** True when `text` is only the beginning. */
  readonly truncated: boolean;
}

export interface ReadLimits {
  /** Larger files are refused, unread. */
  readonly maxFileBytes: number;
  /** Size of the result as JSON; longer text is cut. */
  readonly maxResultBytes: number;
}

export const READ_LIMITS: ReadLimits = { maxFileBytes: 1024 * 1024, maxResultBytes: 60 * 1024 };

const CHUNK_BYTES = 64 * 1024;

/**
 * Reads a text file whole.
 *
 * @throws ToolFault HF-5104 outside, HF-5105 missing or unreadable, HF-5106 too large, HF-5107 holds a NUL or is no UTF-8
 */
export async function readTextFile(
  root: ConfinedRoot,
  path: string,
  options: { readonly signal: AbortSignal; readonly limits?: ReadLimits },
): Promise<FileText> {
  const limits = options.limits ?? READ_LIMITS;
  const parts = await resolvePath(root, path);
  const name = parts.at(-1);
  if (name === undefined) throw unreadableFault(path, "it is a folder");
  const folder = await ConfinedFolder.open(root, parts.slice(0, -1), { shown: path });
  try {
    const handle = await folder.openEntry(name, constants.O_RDONLY);
    try {
      const text = toText(path, await readBytes(path, handle, limits, options.signal));
      return bounded({ path, text, truncated: false }, limits.maxResultBytes);
    } finally {
      await handle.close();
    }
  } catch (error) {
    options.signal.throwIfAborted();
    throw systemFault(path, error);
  } finally {
    await folder.close();
  }
}

async function readBytes(
  path: string,
  handle: FileHandle,
  limits: ReadLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const status = await handle.stat();
  if (status.isDirectory()) throw unreadableFault(path, "it is a folder");
  if (!status.isFile()) throw unreadableFault(path, "it is no regular file");
  if (status.size > limits.maxFileBytes) throw tooLarge(path, status.size, limits);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await handle.read(new Uint8Array(CHUNK_BYTES), 0, CHUNK_BYTES);
    if (bytesRead === 0) return Buffer.concat(chunks);
    chunks.push(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
    // It may grow while it is read.
    if (bytes > limits.maxFileBytes) throw tooLarge(path, bytes, limits);
  }
}

const tooLarge = (path: string, bytes: number, limits: ReadLimits): ToolFault =>
  new ToolFault(
    "HF-5106",
    `File ${quoted(path)}: it has ${bytes} bytes, at most ${limits.maxFileBytes} are read. Do without it, or read another file.`,
  );

function toText(path: string, bytes: Uint8Array): string {
  const refuse = (why: string): ToolFault =>
    new ToolFault("HF-5107", `File ${quoted(path)}: it is no text (${why}). Do without it, or read another file.`);
  if (bytes.includes(0)) throw refuse("it holds NUL bytes");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("it is not UTF-8"); // The error of the decoder says no more than that.
  }
}

/** Cuts the text so that the result as JSON fits; a surrogate pair is not split. */
function bounded(file: FileText, maxBytes: number): FileText {
  const fits = (candidate: FileText): boolean => Buffer.byteLength(JSON.stringify(candidate)) <= maxBytes;
  if (fits(file)) return file;
  const head = (length: number): FileText => {
    const text = file.text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
    return { ...file, text, truncated: true };
  };
  let low = 0;
  let high = Math.min(file.text.length, maxBytes);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(head(middle))) low = middle;
    else high = middle - 1;
  }
  return head(low);
}
