import { createInterface } from "node:readline/promises";

export interface Question {
  readonly question: string;
  readonly options: readonly string[];
  readonly default: string | undefined;
}

/**
 * Asks the person at the terminal.
 * @returns the answer; the default on an empty line; undefined when input ended without one
 */
export async function askPerson(
  question: Question,
  input: NodeJS.ReadStream,
  output: NodeJS.WriteStream,
): Promise<string | undefined> {
  const lines = createInterface({ input, output });
  try {
    for (;;) {
      const choices = question.options.length > 0 ? ` [${question.options.join(" / ")}]` : "";
      const fallback = question.default === undefined ? "" : ` (Enter: ${question.default})`;
      const answer = (await lines.question(`${question.question}${choices}${fallback} `)).trim();
      if (answer === "" && question.default !== undefined) return question.default;
      if (answer !== "" && (question.options.length === 0 || question.options.includes(answer))) return answer;
      output.write(`Please answer one of: ${question.options.join(", ")}\n`);
    }
  } catch {
    return undefined; // the terminal was closed
  } finally {
    lines.close();
  }
}
