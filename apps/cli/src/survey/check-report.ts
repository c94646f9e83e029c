import { isUtf8 } from "node:buffer";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";

export interface ReportCheck {
  readonly documents: number;
  readonly words: number;
  /** Empty when the report says what the files say. */
  readonly differences: readonly string[];
}

interface Section {
  readonly file: string;
  readonly words: number;
  readonly headings: number;
}

/**
 * Compares a survey report with the files themselves, counted here once more by other means.
 * Files that the tools refuse (too large, binary, behind a link that leaves the folder) must stand under "Could not be read".
 */
export async function checkReport(reportPath: string, folder: string, maxBytes: number): Promise<ReportCheck> {
  const report = await readFile(reportPath, "utf8");
  const [read = "", unread = ""] = report.split(/^## Could not be read$/m);
  const sections = new Map(sectionsOf(read).map((section) => [section.file, section]));
  const failed = new Set([...unread.matchAll(/^- `([^`]+)`:/gm)].map((match) => match[1] ?? ""));
  const differences: string[] = [];
  let words = 0;
  const files = await documentsIn(folder);
  for (const file of files) {
    const text = await textOf(folder, file, maxBytes);
    const section = sections.get(file);
    if (text === undefined) {
      if (!failed.has(file)) differences.push(`${file}: cannot be read, but the report does not say so`);
      continue;
    }
    const expected = countIn(text);
    if (section === undefined) differences.push(`${file}: missing from the report`);
    else if (section.words !== expected.words || section.headings !== expected.headings) {
      differences.push(
        `${file}: report says ${section.words} words and ${section.headings} headings, the file has ${expected.words} and ${expected.headings}`,
      );
    } else words += expected.words;
  }
  for (const file of sections.keys())
    if (!files.includes(file)) differences.push(`${file}: in the report, but no such file`);
  const total = /^(\d+) documents, (\d+) words/m.exec(report);
  if (Number(total?.[1]) !== sections.size)
    differences.push(`report counts ${total?.[1] ?? "no"} documents and lists ${sections.size}`);
  if (Number(total?.[2]) !== words)
    differences.push(`report counts ${total?.[2] ?? "no"} words, its files have ${words}`);
  return { documents: sections.size, words, differences };
}

/** @returns undefined for what the tools refuse: links that lead out, what is too large, what is no text */
async function textOf(folder: string, file: string, maxBytes: number): Promise<string | undefined> {
  const path = await realpath(join(folder, file)).catch(() => "");
  if (!path.startsWith(`${await realpath(folder)}${sep}`)) return undefined;
  const info = await stat(path);
  if (!info.isFile() || info.size > maxBytes) return undefined;
  const bytes = await readFile(path).catch(() => undefined);
  return bytes === undefined || bytes.includes(0) || !isUtf8(bytes) ? undefined : bytes.toString("utf8");
}

const sectionsOf = (text: string): readonly Section[] =>
  [...text.matchAll(/^- File: `([^`]+)`\n- Words: (\d+)\n- Headings: (\d+)$/gm)].map(
    ([, file = "", words, headings]) => ({
      file,
      words: Number(words),
      headings: Number(headings),
    }),
  );

/** Documents of a folder as a person would list them: `.md` and `.txt`, no hidden folders, no dependencies, nothing below a folder that is closed to us. */
export async function documentsIn(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  const walk = async (below: string): Promise<void> => {
    const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      const path = join(below, entry.name);
      if (entry.isDirectory()) await walk(path);
      else if (/\.(md|txt)$/i.test(entry.name) && path !== "report.md") found.push(path);
    }
  };
  await walk("");
  return found.toSorted();
}

/** Words: runs of non-space with a letter or digit. Headings: ATX headings outside of fenced code. */
function countIn(text: string): { readonly words: number; readonly headings: number } {
  let words = 0;
  for (const run of text.matchAll(/\S+/gu)) if (/\p{L}|\p{N}/u.test(run[0])) words += 1;
  let headings = 0;
  let isCode = false;
  for (const line of text.replace(/^\uFEFF/, "").split(/\r?\n/)) {
    if (/^\s{0,3}(```|~~~)/.test(line)) isCode = !isCode;
    else if (!isCode && /^\s{0,3}#{1,6}\s/.test(line)) headings += 1;
  }
  return { words, headings };
}
