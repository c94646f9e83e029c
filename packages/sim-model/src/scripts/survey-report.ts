import type { DocumentFacts } from "./document-facts.ts";

/** The orders the owner may choose between; the first is the default. */
export const REPORT_ORDERS = ["title", "words"] as const;
export type ReportOrder = (typeof REPORT_ORDERS)[number];

/** What came back for one document. */
export type Finding =
  | { readonly kind: "read"; readonly facts: DocumentFacts }
  | { readonly kind: "failed"; readonly path: string; readonly reason: string };

/** What a survey found, ready to be written. */
export type Survey = {
  readonly folder: string;
  readonly order: ReportOrder;
  readonly findings: readonly Finding[];
};

/** Sums over the documents that could be read. */
export function totalsOf(survey: Survey): {
  readonly documents: number;
  readonly words: number;
  readonly failed: number;
} {
  const read = readDocuments(survey);
  return {
    documents: read.length,
    words: read.reduce((sum, facts) => sum + facts.words, 0),
    failed: survey.findings.length - read.length,
  };
}

/**
 * The report as Markdown.
 *
 * Order `title` is alphabetical without regard to case; `words` puts the longest first. Equal ones
 * follow their paths, so that the same findings always give the same bytes.
 */
export function writeSurveyReport(survey: Survey): string {
  const { documents, words } = totalsOf(survey);
  const failed = survey.findings.filter((finding) => finding.kind === "failed");
  return [
    `# Survey of ${survey.folder}`,
    "",
    `${documents} documents, ${words} words, ordered by ${survey.order}.`,
    ...readDocuments(survey).toSorted(comparators[survey.order]).flatMap(sectionOf),
    ...(failed.length === 0 ? [] : ["", "## Could not be read", ""]),
    ...failed.map((finding) => `- \`${finding.path}\`: ${oneLine(finding.reason)}`),
    "",
  ].join("\n");
}

const comparators: Record<ReportOrder, (a: DocumentFacts, b: DocumentFacts) => number> = {
  title: (a, b) => compareText(a.title.toLowerCase(), b.title.toLowerCase()) || compareText(a.path, b.path),
  words: (a, b) => b.words - a.words || compareText(a.path, b.path),
};

// Not localeCompare: its order depends on the machine, and a report must not.
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function readDocuments(survey: Survey): readonly DocumentFacts[] {
  return survey.findings.flatMap((finding) => (finding.kind === "read" ? [finding.facts] : []));
}

function sectionOf(facts: DocumentFacts): readonly string[] {
  return [
    "",
    `## ${oneLine(facts.title)}`,
    "",
    `- File: \`${facts.path}\``,
    `- Words: ${facts.words}`,
    `- Headings: ${facts.headings}`,
    `- First sentence: ${oneLine(facts.firstSentence) || "(none)"}`,
  ];
}

function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
