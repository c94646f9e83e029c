import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, rename, unlink } from "node:fs/promises";
import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { ConfinedFolder, planPath, type ConfinedRoot } from "./confined-folder.ts";
import type { ToolDescription } from "./define-tool.ts";
import { outsideFault, systemCode } from "./file-fault.ts";
import { briefly, quoted, ToolFault } from "./tool-fault.ts";

/** Characters of one report. */
const MAX_REPORT_CHARACTERS = 1_000_000;

const Input = z.object({
  path: z
    .string()
    .min(1)
    .max(1024)
    .describe('Where to write it, relative to the output folder, for example "report.md".'),
  content: z.string().max(MAX_REPORT_CHARACTERS).describe("The whole text."),
});

export const WRITE_REPORT = {
  name: "write_report",
  description: "Writes a text file into the output folder. A file that is there already is replaced.",
  input: Input,
  crashPolicy: "dedupeKey",
} as const satisfies ToolDescription<typeof Input>;

export interface WrittenReport {
  /** Relative to the output folder. */
  readonly path: string;
  readonly bytes: number;
}

/** Hidden folder in the output folder: half-written files, and one note per call that was carried out. */
const NOTES = ".holdfast";

const Note = z.object({ path: z.string(), sha256: z.string() });
type Note = Readonly<z.infer<typeof Note>>;

/**
 * Writes a report: whole or not at all, and once per idempotency key. A second attempt of a call that was carried out changes
 * nothing, even when a later call has replaced the file.
 *
 * @throws ToolFault HF-5104 outside the output folder, HF-5103 when it cannot be written
 * @throws RuntimeFault HF-3006 when the key was used for another report
 */
export async function writeReport(
  root: ConfinedRoot,
  report: z.output<typeof Input>,
  idempotencyKey: string,
): Promise<WrittenReport> {
  const { path, content } = report;
  const parts = planPath(path);
  const name = parts.at(-1);
  if (name === undefined) throw outsideFault(path, "it names no file");
  // Keeps a model out of the notes as well.
  if (parts.some((part) => part.startsWith("."))) throw outsideFault(path, "hidden files are not written");
  const written = { path: parts.join("/"), bytes: Buffer.byteLength(content) };
  const note = { path: written.path, sha256: createHash("sha256").update(content).digest("hex") };
  const noteName = `${createHash("sha256").update(idempotencyKey).digest("hex")}.json`;
  await makeRoot(root, path);
  const notes = await ConfinedFolder.open(root, [NOTES], { shown: path, create: true });
  try {
    const earlier = await readNote(notes, noteName);
    if (earlier !== undefined) {
      assertSame(earlier, note);
      return written;
    }
    const folder = await ConfinedFolder.open(root, parts.slice(0, -1), { shown: path, create: true });
    try {
      await replaceFile(notes, folder, name, content);
    } finally {
      await folder.close();
    }
    // A crash before this line writes the same report again.
    await replaceFile(notes, notes, noteName, JSON.stringify(note));
    return written;
  } catch (error) {
    throw error instanceof RuntimeFault ? error : unwritable(path, error);
  } finally {
    await notes.close();
  }
}

async function makeRoot(root: ConfinedRoot, path: string): Promise<void> {
  try {
    await mkdir(root.root, { recursive: true });
  } catch (error) {
    throw unwritable(path, error);
  }
}

function assertSame(earlier: Note, note: Note): void {
  if (earlier.path === note.path && earlier.sha256 === note.sha256) return;
  throw new RuntimeFault(
    "HF-3006",
    `File ${quoted(note.path)}: this call has already written another report. Make a new call for a new report.`,
  );
}

async function readNote(notes: ConfinedFolder, name: string): Promise<Note | undefined> {
  try {
    const handle = await notes.openEntry(name, constants.O_RDONLY);
    try {
      return Note.parse(JSON.parse(await handle.readFile("utf8")));
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Writes beside, then renames: a reader sees the old file or the new one. A link in its place is replaced, not followed. */
async function replaceFile(
  notes: ConfinedFolder,
  folder: ConfinedFolder,
  name: string,
  content: string,
): Promise<void> {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const half = `${randomUUID()}.half`;
  const handle = await notes.openEntry(half, O_WRONLY | O_CREAT | O_EXCL, 0o644);
  try {
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(notes.pathOf(half), folder.pathOf(name));
    await folder.handle.sync();
  } catch (error) {
    await unlink(notes.pathOf(half)).catch(() => undefined); // The error that matters is the one at hand.
    throw error;
  }
}

function unwritable(path: string, error: unknown): ToolFault {
  const code = systemCode(error);
  const why = code === "unknown" ? briefly(error) : code;
  return new ToolFault(
    "HF-5103",
    `File ${quoted(path)}: it cannot be written (${why}). Choose another name, or say so.`,
  );
}
