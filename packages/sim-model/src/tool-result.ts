import { z } from "zod";

const ErrorResult = z.object({
  error: z.union([z.string(), z.object({ message: z.string() }).transform((e) => e.message)]),
});

/**
 * The value a tool result stands for: its JSON, or the text itself when it is none.
 *
 * A caller may encode a text result as a JSON string, so JSON inside a JSON string is read as well.
 */
export function parseToolResult(text: string): unknown {
  const value = tryJson(text);
  return typeof value === "string" && value !== text ? parseToolResult(value) : value;
}

/** The reason in a result of the shape `{error: text}` or `{error: {message}}`, if it has one. */
export function errorOf(value: unknown): string | undefined {
  return ErrorResult.safeParse(value).data?.error;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON is an expected outcome: a plain text result stands for itself.
    return text;
  }
}
