import { z } from "zod";
import { lastUserText, turnFrom } from "../dialogue.ts";
import type { Script } from "../script.ts";
import { parseToolResult } from "../tool-result.ts";

const Steps = z.array(z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })).min(1));
const Started = z.looseObject({ taskId: z.string() });

/**
 * Makes the tool calls that the last user message asks for, and answers with their results as JSON.
 *
 * The message is JSON: a list of steps, each a list of `{name, arguments}`. An argument `$task:<n>` stands for the `taskId` in the result of
 * the n-th call of the chat, from 0. Any other message is echoed.
 */
export const puppet: Script = ({ messages }) => {
  const steps = stepsOf(lastUserText(messages));
  if (steps === undefined) return { text: lastUserText(messages) };
  const start = messages.findLastIndex((message) => message.role === "user");
  const { calls } = turnFrom(messages, start);
  const everything = turnFrom(messages, -1).calls.map(({ result }) => parseToolResult(result));
  let made = 0;
  for (const step of steps) {
    if (made === calls.length) {
      return { toolCalls: step.map((call) => ({ ...call, arguments: filled(call.arguments, everything) })) };
    }
    made += step.length;
  }
  return { text: JSON.stringify(calls.map(({ result }) => parseToolResult(result))) };
};

function stepsOf(text: string): z.infer<typeof Steps> | undefined {
  try {
    return Steps.safeParse(JSON.parse(text)).data;
  } catch {
    // Any text is a message; most are no JSON.
    return undefined;
  }
}

const filled = (
  given: Readonly<Record<string, unknown>>,
  results: readonly unknown[],
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const [, index] = typeof value === "string" ? (/^\$task:(\d+)$/.exec(value) ?? []) : [];
      return [name, index === undefined ? value : Started.safeParse(results[Number(index)]).data?.taskId];
    }),
  );
