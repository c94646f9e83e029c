import { readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { misfit, parseAgentFile, type AgentFileFields } from "./agent-file.ts";

const MAX_FILE_BYTES = 256 * 1024;
const ENDINGS = new Set([".md", ".yaml", ".yml"]);

/** Where a definition comes from. `code`: the application. */
export type AgentOrigin = "code" | "project" | "user";

/** A definition that was read from a file. */
export interface AgentFile {
  readonly origin: "project" | "user";
  readonly file: string;
  readonly name: string;
  readonly fields: AgentFileFields & { readonly instructions: string };
}

/**
 * The definitions in a folder: its files `*.md`, `*.yaml` and `*.yml`, not those in folders below it, in order of their names.
 *
 * @returns none when there is no such folder
 * @throws RuntimeFault HF-5206 for a file that is no definition, or when two have one name
 */
export async function readAgentFolder(folder: string, origin: AgentFile["origin"]): Promise<readonly AgentFile[]> {
  const found = new Map<string, AgentFile>();
  for (const entry of (await entriesOf(folder)).toSorted()) {
    if (!ENDINGS.has(extname(entry))) continue;
    const file = join(folder, entry);
    const { size, isRegular } = await statOf(file);
    if (!isRegular) continue;
    if (size > MAX_FILE_BYTES) throw misfit(file, `it has ${size} bytes, at most ${MAX_FILE_BYTES} are read`);
    const fields = parseAgentFile(file, await readFile(file, "utf8"));
    const name = fields.name ?? basename(entry, extname(entry));
    const other = found.get(name);
    if (other !== undefined) throw misfit(file, `the name ${name} is taken by ${other.file}`);
    found.set(name, { origin, file, name, fields });
  }
  return [...found.values()];
}

async function entriesOf(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw misfit(folder, "the folder cannot be read", error);
  }
}

async function statOf(file: string): Promise<{ readonly size: number; readonly isRegular: boolean }> {
  const found = await stat(file).catch((error: unknown) => {
    throw misfit(file, "it cannot be read", error);
  });
  return { size: found.size, isRegular: found.isFile() };
}
