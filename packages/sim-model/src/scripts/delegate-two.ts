import { lastUserText, turnFrom } from "../dialogue.ts";
import type { Script } from "../script.ts";
import { parseToolResult } from "../tool-result.ts";

const CHILDREN = ["child A", "child B"] as const;

/**
 * Delegates once to two children in parallel, then lists both results in call order.
 *
 * The delegation belongs to the first user message. A message that arrives while the children run
 * changes nothing; one that arrives after the answer is echoed.
 */
export const delegateTwo: Script = ({ messages }) => {
  const turn = turnFrom(
    messages,
    messages.findIndex((message) => message.role === "user"),
  );
  if (turn.isAnswered) return { text: lastUserText(messages) };
  const tasks = turn.calls.filter((call) => call.name === "task");
  if (tasks.length === 0) {
    return {
      toolCalls: CHILDREN.map((prompt) => ({
        name: "task",
        arguments: { subagent: "blocker", prompt },
      })),
    };
  }
  const lines = tasks.map((task, index) => `${CHILDREN[index]}: ${asText(task.result)}`);
  return { text: ["Both children answered.", ...lines].join("\n") };
};

function asText(result: string): string {
  const value = parseToolResult(result);
  return typeof value === "string" ? value : JSON.stringify(value);
}
