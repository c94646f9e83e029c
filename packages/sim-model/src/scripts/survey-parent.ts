import { z } from "zod";
import { lastUserText, turnFrom } from "../dialogue.ts";
import type { AnsweredCall, Turn } from "../dialogue.ts";
import type { Script, ScriptStep } from "../script.ts";
import { errorOf, parseToolResult } from "../tool-result.ts";
import { DocumentFacts } from "./document-facts.ts";
import { REPORT_ORDERS, totalsOf, writeSurveyReport } from "./survey-report.ts";
import type { Finding, ReportOrder, Survey } from "./survey-report.ts";

const ASSIGNMENT = /Survey the documents in (?:"([^"\n]+)"|(\S+))/;
const REPORT_PATH = "report.md";
/** An agent may make so many calls in one step. */
const MAX_CALLS_AT_ONCE = 64;

const Entry = z.object({ path: z.string().min(1) });
const Listing = z.object({ files: z.array(Entry), skipped: z.array(Entry.extend({ reason: z.string() })).default([]) });

/** Reasons of a listing that are about one document: a reader is sent there all the same, so that the report names it. */
const UNREADABLE = new Set(["link", "no regular file", "could not be read"]);
const TaskArguments = z.object({ description: z.string() });
const OwnerAnswer = z.object({ answer: z.string() });
const WrittenReport = z.object({ path: z.string().min(1) });

/**
 * A survey of a folder: list the files, one reader per document in parallel, ask the owner for the
 * order, write the report, answer. Every step follows from the tool results in the request.
 *
 * The survey belongs to the last user message that asks for one; a message that arrives after its
 * answer is echoed.
 */
export const surveyParent: Script = ({ messages }) => {
  const start = messages.findLastIndex((message) => message.role === "user" && ASSIGNMENT.test(message.text));
  const folder = folderIn(messages[start]?.text ?? "");
  if (folder === undefined) {
    return { text: 'I survey folders. Ask: "Survey the documents in <folder>".' };
  }
  const turn = turnFrom(messages, start);
  return turn.isAnswered ? { text: lastUserText(messages) } : nextStep(folder, turn);
};

// A folder with spaces stands in double quotes; otherwise it ends where the sentence goes on.
function folderIn(text: string): string | undefined {
  const [, quoted, bare] = ASSIGNMENT.exec(text) ?? [];
  return quoted ?? (bare?.replace(/[.,;:!?]+$/, "") || bare);
}

function nextStep(folder: string, turn: Turn): ScriptStep {
  const listing = turn.calls.find((call) => call.name === "list_files");
  if (listing === undefined) return callTool("list_files", { path: "." });

  const tasks = turn.calls.filter((call) => call.name === "task");
  const reading = delegateReading(folder, listing, new Set(tasks.map(pathOf)));
  if (reading !== undefined) return reading;

  const question = turn.calls.find((call) => call.name === "ask_owner");
  if (question === undefined) {
    return callTool("ask_owner", {
      question: "In which order should the report list the documents?",
      options: REPORT_ORDERS,
      default: REPORT_ORDERS[0],
    });
  }
  const survey = {
    folder,
    order: orderFrom(question.result),
    findings: tasks.map(findingFrom),
  };
  const writing = turn.calls.find((call) => call.name === "write_report");
  if (writing === undefined) {
    return callTool("write_report", { path: REPORT_PATH, content: writeSurveyReport(survey) });
  }
  return { text: summarise(survey, writing) };
}

function callTool(name: string, args: Readonly<Record<string, unknown>>): ScriptStep {
  return { toolCalls: [{ name, arguments: args }] };
}

/** The next readers to send out; undefined when every document has had one. */
function delegateReading(folder: string, listing: AnsweredCall, sent: ReadonlySet<string>): ScriptStep | undefined {
  const value = parseToolResult(listing.result);
  const parsed = Listing.safeParse(value);
  if (!parsed.success) {
    return { text: `I could not list ${folder}: ${errorOf(value) ?? listing.result}` };
  }
  // The report of an earlier survey is output, not one of the documents.
  const { files, skipped } = parsed.data;
  const paths = [...files, ...skipped.filter(({ reason }) => UNREADABLE.has(reason))]
    .map((file) => file.path)
    .filter((path) => /\.(?:md|txt)$/i.test(path) && path !== REPORT_PATH);
  if (paths.length === 0) return { text: `I found no documents (.md, .txt) in ${folder}.` };
  const next = paths.filter((path) => !sent.has(path)).slice(0, MAX_CALLS_AT_ONCE);
  if (next.length === 0) return undefined;
  return {
    toolCalls: next.map((path) => ({
      name: "task",
      arguments: { subagent: "reader", prompt: `Read the document ${path}`, description: path },
    })),
  };
}

function findingFrom(task: AnsweredCall): Finding {
  const value = parseToolResult(task.result);
  const facts = DocumentFacts.safeParse(value);
  if (facts.success) return { kind: "read", facts: facts.data };
  return {
    kind: "failed",
    path: pathOf(task),
    reason: errorOf(value) ?? (task.result.trim() || "the reader returned nothing"),
  };
}

function pathOf(task: AnsweredCall): string {
  return TaskArguments.safeParse(parseToolResult(task.arguments)).data?.description ?? "unknown document";
}

// An answer is a choice, `{answer}`, or a sentence with one of the choices in it. Anything else,
// such as a question that expired unanswered, means the default.
function orderFrom(result: string): ReportOrder {
  const value = parseToolResult(result);
  const text = typeof value === "string" ? value : (OwnerAnswer.safeParse(value).data?.answer ?? "");
  const words = text.toLowerCase().split(/[^a-z]+/);
  return REPORT_ORDERS.find((order) => words.includes(order)) ?? REPORT_ORDERS[0];
}

function summarise(survey: Survey, writing: AnsweredCall): string {
  const { documents, words, failed } = totalsOf(survey);
  const value = parseToolResult(writing.result);
  const problem = errorOf(value);
  const path = WrittenReport.safeParse(value).data?.path ?? REPORT_PATH;
  return [
    `I surveyed ${documents} documents with ${words} words in total.`,
    ...(failed > 0 ? [`${failed} could not be read.`] : []),
    problem === undefined ? `The report is in ${path}.` : `The report could not be written: ${problem}`,
  ].join(" ");
}
