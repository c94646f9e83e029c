import { RuntimeFault } from "@holdfast/protocol";

/** A tool call that did not work out. Its message is read by the model: it says what to do, and names nothing of the machine. */
export class ToolFault extends RuntimeFault {}

/** A value as a message may quote it: on one line, at most 200 characters. */
export function quoted(value: string): string {
  const text = JSON.stringify(value);
  return text.length <= 200 ? text : `${text.slice(0, 199)}…`;
}

/** First line of a foreign error, at most 300 characters. */
export function briefly(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [line = ""] = text.trim().split("\n");
  return line.length <= 300 ? line : `${line.slice(0, 299)}…`;
}
