import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A Markdown file of the project. */
export interface Document {
  /** Relative to the root of the project. */
  readonly path: string;
  readonly text: string;
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface CodeBlock {
  readonly path: string;
  readonly language: string;
  /** Line of the file on which its first line stands, from 1. */
  readonly line: number;
  readonly text: string;
}

export interface Link {
  readonly path: string;
  readonly label: string;
  readonly target: string;
}

export const readDocument = (root: string, path: string): Document => ({
  path,
  text: readFileSync(join(root, path), "utf8"),
});

/** Every file below a folder, relative to the root. */
export const filesBelow = (root: string, folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted();

/** Fenced code of a document. */
export function codeBlocksOf({ path, text }: Document): readonly CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { readonly language: string; readonly line: number; readonly lines: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = /^```(\S*)/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { language: fence[1] ?? "", line: index + 2, lines: [] };
    else {
      blocks.push({ path, language: open.language, line: open.line, text: open.lines.join("\n") });
      open = undefined;
    }
  }
  return blocks;
}

/** A document without its fenced code. */
export function proseOf({ text }: Document): string {
  let isCode = false;
  return text
    .split("\n")
    .filter((line) => {
      const isFence = line.startsWith("```");
      if (isFence) isCode = !isCode;
      return !isFence && !isCode;
    })
    .join("\n");
}

/** Tables of a document; cells are trimmed and keep their markup. */
export function tablesOf(document: Document): readonly Table[] {
  const tables: { head: readonly string[]; rows: (readonly string[])[] }[] = [];
  let current: { head: readonly string[]; rows: (readonly string[])[] } | undefined;
  for (const line of proseOf(document).split("\n")) {
    if (!line.startsWith("|")) {
      current = undefined;
      continue;
    }
    const cells = line
      .replace(/^\|/, "")
      .replace(/\|\s*$/, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
    if (current === undefined) tables.push((current = { head: cells, rows: [] }));
    else if (!cells.every((cell) => /^:?-+:?$/.test(cell))) current.rows.push(cells);
  }
  return tables;
}

/** Rows of every table whose head begins with these cells. */
export const rowsUnder = (document: Document, ...head: readonly string[]): readonly (readonly string[])[] =>
  tablesOf(document)
    .filter((table) => head.every((cell, index) => table.head[index] === cell))
    .flatMap(({ rows }) => rows);

/** Links of a document or of one cell. A label may hold brackets and escaped characters, but no further link. */
export const linksOf = ({ path, text }: Document): readonly Link[] =>
  [...text.matchAll(/\[((?:[^[\]\\]|\\.)+)\]\(([^()\s]+)\)/g)].map(([, label = "", target = ""]) => ({
    path,
    label: label.replaceAll(/\\(.)/g, "$1"),
    target,
  }));

/** A cell as a reader sees it: without the marks of inline code. */
export const plain = (cell: string): string => cell.replaceAll("`", "");

/** Words in inline code. */
export const codeWords = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]*)`/g)].map(([, word = ""]) => word);

/** Anchors that the headings of a document give. */
export const anchorsOf = (document: Document): readonly string[] =>
  [...proseOf(document).matchAll(/^#{1,6}\s+(.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
