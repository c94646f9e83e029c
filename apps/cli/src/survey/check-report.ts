import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

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
    const bytes = await readFile(join(folder, file)).catch(() => undefined);
    const section = sections.get(file);
    if (bytes === undefined || bytes.length > maxBytes || bytes.includes(0)) {
      if (!failed.has(file)) differences.push(`${file}: cannot be read, but the report does not say so`);
      continue;
    }
    const expected = countIn(bytes.toString("utf8"));
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

const sectionsOf = (text: string): readonly Section[] =>
  [...text.matchAll(/^- File: `([^`]+)`\n- Words: (\d+)\n- Headings: (\d+)$/gm)].map(
    ([, file = "", words, headings]) => ({
      file,
      words: Number(words),
      headings: Number(headings),
    }),
  );

/** Documents of a folder as a person would list them: `.md` and `.txt`, no hidden folders, no dependencies. */
export async function documentsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(md|txt)$/i.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter(
      (path) =>
        !path.split("/").some((part) => part.startsWith(".") || part === "node_modules") && path !== "report.md",
    )
    .toSorted();
}

/** Words: runs of non-space with a letter or digit. Headings: ATX headings outside of fenced code. */
function countIn(text: string): { readonly words: number; readonly headings: number } {
  let words = 0;
  for (const run of text.matchAll(/\S+/gu)) if (/\p{L}|\p{N}/u.test(run[0])) words += 1;
  let headings = 0;
  let isCode = false;
  for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
    if (/^ {0,3}(```|~~~)/.test(line)) isCode = !isCode;
    else if (!isCode && /^ {0,3}#{1,6}[ \t]+\S/.test(line)) headings += 1;
  }
  return { words, headings };
}
