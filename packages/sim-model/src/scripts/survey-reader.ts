import { z } from "zod";
import { turnFrom } from "../dialogue.ts";
import type { Script } from "../script.ts";
import { errorOf, parseToolResult } from "../tool-result.ts";
import { readDocumentFacts } from "./document-facts.ts";

const ASSIGNMENT = /Read the document (\S.*?)\s*$/m;

const FileText = z.object({ text: z.string() });

/**
 * A reader: asked to "Read the document <path>", it calls `read_file` and answers with the facts
 * of the text it was sent, as JSON; or with `{path, error}` when the file could not be read.
 *
 * @param options.thinkMs  milliseconds before the first token of each of its answers
 */
export function surveyReader(options: { readonly thinkMs: number }): Script {
  const delayMs = options.thinkMs;
  return ({ messages }) => {
    const start = messages.findLastIndex((message) => message.role === "user" && ASSIGNMENT.test(message.text));
    const path = ASSIGNMENT.exec(messages[start]?.text ?? "")?.[1];
    if (path === undefined) {
      return { delayMs, text: 'I read one document. Ask: "Read the document <path>".' };
    }
    const reading = turnFrom(messages, start).calls.findLast((call) => call.name === "read_file");
    if (reading === undefined) {
      return { delayMs, toolCalls: [{ name: "read_file", arguments: { path } }] };
    }
    return { delayMs, text: JSON.stringify(judge(path, reading.result)) };
  };
}

function judge(path: string, result: string): object {
  const value = parseToolResult(result);
  const file = FileText.safeParse(value);
  if (file.success) return readDocumentFacts(path, file.data.text);
  return { path, error: errorOf(value) ?? (result.trim() || "the tool returned nothing") };
}
