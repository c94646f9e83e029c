import { lstat, readdir } from "node:fs/promises";
import { z } from "zod";
import { ConfinedFolder, resolvePath, type ConfinedRoot } from "./confined-folder.ts";
import type { ToolDescription } from "./define-tool.ts";
import { systemFault } from "./file-fault.ts";

const Input = z.object({
  path: z.string().max(4096).default(".").describe('Folder relative to the root; "." for the root itself.'),
});

export const LIST_FILES = {
  name: "list_files",
  description:
    "Lists the files below a folder, with their sizes in bytes, sorted by path. Hidden entries, node_modules and links are left out and named under skipped.",
  input: Input,
  crashPolicy: "idempotent",
} as const satisfies ToolDescription<typeof Input>;

/** Paths are relative to the root, with `/`, so that they can be given to `read_file` as they are. */
export interface FileListing {
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  /** What is there but not listed, at most {@link MAX_SKIPPED} entries. */
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
}

export interface ListLimits {
  readonly maxFiles: number;
  /** Entries looked at, folders and skipped ones included. */
  readonly maxEntries: number;
  readonly maxDepth: number;
  /** Size of the listing as JSON. */
  readonly maxBytes: number;
}

export const LIST_LIMITS: ListLimits = { maxFiles: 1000, maxEntries: 20_000, maxDepth: 32, maxBytes: 60 * 1024 };

const MAX_SKIPPED = 50;

/** Lists the regular files below a folder. @throws ToolFault HF-5104, HF-5105 */
export async function listFiles(
  root: ConfinedRoot,
  path: string,
  options: { readonly signal: AbortSignal; readonly limits?: ListLimits },
): Promise<FileListing> {
  const parts = await resolvePath(root, path);
  const walk = new Walk(options.limits ?? LIST_LIMITS, options.signal);
  const folder = await ConfinedFolder.open(root, parts, { shown: path });
  try {
    await walk.visit(folder, parts);
  } catch (error) {
    throw systemFault(path, error);
  } finally {
    await folder.close();
  }
  return walk.listing();
}

type File = FileListing["files"][number];
type Skipped = FileListing["skipped"][number];

class Walk {
  readonly #limits: ListLimits;
  readonly #signal: AbortSignal;
  readonly #files: File[] = [];
  readonly #skipped: Skipped[] = [];
  #entries = 0;

  constructor(limits: ListLimits, signal: AbortSignal) {
    this.#limits = limits;
    this.#signal = signal;
  }

  async visit(folder: ConfinedFolder, parts: readonly string[]): Promise<void> {
    const names = await readdir(folder.pathOf("."));
    for (const name of names.toSorted(compareText)) {
      this.#signal.throwIfAborted();
      this.#entries += 1;
      const here = [...parts, name];
      if (this.#entries > this.#limits.maxEntries) {
        this.#skip(here, "too many entries; list a folder below");
        return;
      }
      await this.#take(folder, name, here);
    }
  }

  async #take(folder: ConfinedFolder, name: string, here: readonly string[]): Promise<void> {
    if (name.startsWith(".")) return this.#skip(here, "hidden");
    if (name === "node_modules") return this.#skip(here, "node_modules");
    try {
      const entry = await lstat(folder.pathOf(name));
      if (entry.isFile()) this.#files.push({ path: here.join("/"), bytes: entry.size });
      else if (entry.isDirectory()) await this.#enter(folder, name, here);
      else this.#skip(here, entry.isSymbolicLink() ? "link" : "no regular file");
    } catch (error) {
      this.#signal.throwIfAborted();
      // One unreadable folder does not hide the others.
      this.#skip(here, systemFault(name, error).code === "HF-5104" ? "link" : "could not be read");
    }
  }

  async #enter(folder: ConfinedFolder, name: string, here: readonly string[]): Promise<void> {
    if (here.length > this.#limits.maxDepth) return this.#skip(here, "too deep");
    const inner = await folder.openFolder(name);
    try {
      await this.visit(inner, here);
    } finally {
      await inner.close();
    }
  }

  #skip(here: readonly string[], reason: string): void {
    this.#skipped.push({ path: here.join("/"), reason });
  }

  listing(): FileListing {
    const { maxFiles, maxBytes } = this.#limits;
    const sorted = this.#files.toSorted((a, b) => compareText(a.path, b.path));
    const skipped = this.#skipped.slice(0, MAX_SKIPPED);
    const omitted = this.#skipped.length - skipped.length;
    if (omitted > 0) skipped.push({ path: "…", reason: `${omitted} more skipped` });
    const files = this.#fitting(sorted.slice(0, maxFiles), maxBytes - jsonBytes(skipped));
    const left = sorted.length - files.length;
    return {
      files,
      skipped: left === 0 ? skipped : [...skipped, { path: "…", reason: `${left} more files; list a folder below` }],
    };
  }

  #fitting(files: readonly File[], maxBytes: number): readonly File[] {
    let bytes = 0;
    const end = files.findIndex((file) => {
      bytes += jsonBytes(file) + 1;
      return bytes > maxBytes;
    });
    return end === -1 ? files : files.slice(0, end);
  }
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

// Not localeCompare: its order depends on the machine, and a listing must not.
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
