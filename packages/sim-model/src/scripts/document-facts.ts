import { z } from "zod";

/** What a reader says about one document; counts are whole numbers. */
export const DocumentFacts = z.object({
  path: z.string(),
  title: z.string(),
  words: z.int().nonnegative(),
  headings: z.int().nonnegative(),
  firstSentence: z.string(),
});
export type DocumentFacts = Readonly<z.infer<typeof DocumentFacts>>;

const MAX_TITLE_CHARACTERS = 120;
const MAX_SENTENCE_CHARACTERS = 240;
const FENCE = /^\s{0,3}(?:```|~~~)/;
const HEADING = /^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$/s;
const SENTENCE_END = /[.!?]["')\]]?(?=\s|$)|[。！？]/u;

/**
 * Computes the facts of a document from its text alone.
 *
 * Title: first `#` heading, else the first line that is not blank, else the path. Words: runs
 * between white space that hold a letter or a digit. Headings and sentences inside fenced code do
 * not count.
 */
export function readDocumentFacts(path: string, text: string): DocumentFacts {
  const lines = proseLines(text);
  const headings = lines.flatMap((line) => HEADING.exec(line)?.[1] ?? []);
  const firstLine = lines.find((line) => line.trim() !== "")?.trim();
  return {
    path,
    title: cut(headings[0] || firstLine || path, MAX_TITLE_CHARACTERS),
    words: text.split(/\s+/u).filter((run) => /[\p{L}\p{N}]/u.test(run)).length,
    headings: headings.length,
    firstSentence: cut(firstSentence(lines, headings.length > 0), MAX_SENTENCE_CHARACTERS),
  };
}

function proseLines(text: string): readonly string[] {
  let isFenced = false;
  return text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => {
      const isFence = FENCE.test(line);
      if (isFence) isFenced = !isFenced;
      return !isFence && !isFenced;
    });
}

function firstSentence(lines: readonly string[], hasHeadings: boolean): string {
  const [first = "", second] = paragraphsOf(lines);
  // In a plain text a lone first line without an end mark is the title, not a sentence.
  const isTitle = !hasHeadings && !SENTENCE_END.test(first) && second !== undefined;
  const paragraph = isTitle ? second : first;
  const end = SENTENCE_END.exec(paragraph);
  return end === null ? paragraph : paragraph.slice(0, end.index + end[0].length);
}

function paragraphsOf(lines: readonly string[]): readonly string[] {
  return lines
    .map((line) => (HEADING.test(line) ? "" : line.trim().replace(/^(?:[-*+>]|\d+\.)\s+/, "")))
    .join("\n")
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.trim().replaceAll("\n", " "))
    .filter((paragraph) => paragraph !== "");
}

function cut(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters - 1)}…`;
}
