import { expect, test } from "vitest";
import { readDocumentFacts } from "./document-facts.ts";

test.each([
  ["an empty document", "", { title: "p", words: 0, headings: 0, firstSentence: "" }],
  [
    "code in fences",
    "```sh\n# no heading. No sentence.\n```\n\n# Real #\n\nYes.",
    { title: "Real", words: 7, headings: 1, firstSentence: "Yes." },
  ],
  [
    "a paragraph over two lines",
    "# T\r\n\r\nOne\r\ntwo! Three.",
    { title: "T", words: 4, headings: 1, firstSentence: "One two!" },
  ],
  [
    "a plain text whose first line is its title",
    "The title\n\nVersion 1.2 is out. Good.",
    { title: "The title", words: 7, headings: 0, firstSentence: "Version 1.2 is out." },
  ],
  [
    "a text without an end mark",
    "- only a point",
    { title: "- only a point", words: 3, headings: 0, firstSentence: "only a point" },
  ],
  ["another script", "# 標題\n\n第一句。第二句。", { title: "標題", words: 2, headings: 1, firstSentence: "第一句。" }],
])("facts of %s", (_name, text, facts) => {
  expect(readDocumentFacts("p", text)).toEqual({ path: "p", ...facts });
});

test("titles and sentences are cut to a length that fits a report", () => {
  const facts = readDocumentFacts("p", `# ${"t".repeat(500)}\n\n${"s".repeat(500)}.`);
  expect(facts.title).toHaveLength(120);
  expect(facts.firstSentence).toHaveLength(240);
});
