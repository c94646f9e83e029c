// ConfinedFolder — a folder that is reached, and whose files are opened, without ever leaving a root.
// Owns: the handle of the folder.  Does not own: what is read or written there.
//   C1 no-way-out      a path is plain and relative; after its links are resolved it lies below the resolved root
//   C2 check-is-open   every step is opened by name in the folder already open, and no step follows a link: a link put there
//                      after the check makes the step fail instead of leading outside
//   C3 no-waiting      opening never blocks (a pipe without a writer would)
//
// With /proc a step is opened in the very folder held (`/proc/self/fd/<n>/<name>`). Without it, what was opened is compared
// with what the checked path leads to afterwards: a smaller net, for machines that have nothing better.

import { constants, existsSync } from "node:fs";
import { lstat, mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { outsideFault, systemCode, systemFault } from "./file-fault.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** How C2 is kept. */
type Confinement = "descriptor" | "recheck";

export interface ConfinedRoot {
  readonly root: string;
  /** Default: `descriptor` where there is a /proc. */
  readonly confinement?: Confinement;
  /** Runs between the check of a path and its opening. Exists for tests of that window. */
  readonly afterCheck?: () => Promise<void>;
}

/**
 * Parts of a relative path, `..` resolved; empty for the root itself.
 *
 * @throws ToolFault HF-5104 when it is absolute, leads above the root or holds a NUL
 */
export function planPath(path: string): readonly string[] {
  if (path.includes("\0")) throw outsideFault(path.replaceAll("\0", "\\0"), "a path holds no NUL");
  if (path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path)) throw outsideFault(path, "the path is absolute");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) throw outsideFault(path, "the path leads out of the folder");
  }
  return parts;
}

/**
 * Resolves the links of a path, as far as they stay below the root.
 *
 * @returns parts without links
 * @throws ToolFault HF-5104 when a link leads outside, HF-5105 when there is nothing
 */
export async function resolvePath(root: ConfinedRoot, path: string): Promise<readonly string[]> {
  const parts = planPath(path);
  try {
    const top = await realpath(root.root);
    const inside = relative(top, await realpath(join(top, ...parts)));
    if (inside === "..") throw outsideFault(path, "a link leads out of the folder");
    if (inside.startsWith(`..${sep}`)) throw outsideFault(path, "a link leads out of the folder"); // C1
    await root.afterCheck?.();
    return inside === "" ? [] : inside.split(sep);
  } catch (error) {
    throw systemFault(path, error);
  }
}

/** An open folder below a root; close it. */
export class ConfinedFolder {
  readonly handle: FileHandle;
  readonly #shown: string;
  /** Present when C2 is kept by checking afterwards. */
  readonly #realPath: string | undefined;

  private constructor(handle: FileHandle, shown: string, realPath: string | undefined) {
    this.handle = handle;
    this.#shown = shown;
    this.#realPath = realPath;
  }

  /**
   * Opens the folder at `parts`, which have no links.
   *
   * @param options.create  makes the folders that are missing
   * @param options.shown  the path for messages
   * @throws ToolFault HF-5104 when a part became a link, HF-5105 when it is missing or no folder
   */
  static async open(
    root: ConfinedRoot,
    parts: readonly string[],
    options: { readonly shown: string; readonly create?: boolean },
  ): Promise<ConfinedFolder> {
    const { shown, create = false } = options;
    try {
      const top = await realpath(root.root);
      const byPath = (root.confinement ?? defaultConfinement()) === "recheck";
      const handle = await open(top, O_RDONLY | O_DIRECTORY);
      let folder = new ConfinedFolder(handle, shown, byPath ? top : undefined);
      for (const part of parts) folder = await folder.#descend(part, create);
      return folder;
    } catch (error) {
      throw systemFault(shown, error);
    }
  }

  /** The path of an entry for a system call. Follows the last part if it is a link: lstat, rename and unlink do not. */
  pathOf(name: string): string {
    return join(this.#realPath ?? `/proc/self/fd/${this.handle.fd}`, name);
  }

  /** Opens an entry that is no link. @throws ToolFault HF-5104 when it is one; whatever the system call throws */
  async openEntry(name: string, flags: number, mode?: number): Promise<FileHandle> {
    const handle = await this.#openNoFollow(name, flags | O_NONBLOCK, mode); // C3
    try {
      await this.#recheck(name, handle);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Opens a folder in this one, which stays open. */
  async openFolder(name: string): Promise<ConfinedFolder> {
    const handle = await this.openEntry(name, O_RDONLY | O_DIRECTORY);
    return new ConfinedFolder(handle, this.#shown, this.#realPath === undefined ? undefined : this.pathOf(name));
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  async #descend(part: string, create: boolean): Promise<ConfinedFolder> {
    try {
      if (create) await this.#makeFolder(part);
      return await this.openFolder(part);
    } finally {
      await this.close();
    }
  }

  async #makeFolder(part: string): Promise<void> {
    try {
      await mkdir(this.pathOf(part));
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
    }
  }

  async #openNoFollow(name: string, flags: number, mode: number | undefined): Promise<FileHandle> {
    try {
      return await open(this.pathOf(name), flags | O_NOFOLLOW, mode); // C2
    } catch (error) {
      const code = systemCode(error);
      // A link that is opened as a folder is refused as "no folder".
      if (code !== "ELOOP" && !(code === "ENOTDIR" && (await this.#isLink(name)))) throw error;
      throw outsideFault(this.#shown, "a part of the path is a link");
    }
  }

  async #isLink(name: string): Promise<boolean> {
    return (await lstat(this.pathOf(name))).isSymbolicLink();
  }

  async #recheck(name: string, handle: FileHandle): Promise<void> {
    if (this.#realPath === undefined) return;
    const path = this.pathOf(name);
    const [real, found, opened] = await Promise.all([realpath(path), lstat(path), handle.stat()]);
    if (real === path && found.ino === opened.ino && found.dev === opened.dev) return;
    throw outsideFault(this.#shown, "the path changed while it was opened");
  }
}

const defaultConfinement = (): Confinement => (existsSync("/proc/self/fd") ? "descriptor" : "recheck");
