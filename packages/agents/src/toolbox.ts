import { RuntimeFault, type ToolDefinition } from "@holdfast/protocol";
import type { Tool, ToolContext, ToolOutput } from "./define-tool.ts";
import { briefly, quoted, ToolFault } from "./tool-fault.ts";

/** What a tool call comes to. */
export interface ToolResultContent {
  /** At most as long as the tool may answer; ends in a note when something is missing. */
  readonly content: string;
  readonly isTruncated: boolean;
}

/** The tools a node can run. */
export interface Toolbox {
  /** In the order in which they were given. */
  definitions(): readonly ToolDefinition[];
  has(name: string): boolean;
  /**
   * Ends when the signal of the context aborts, even if the tool does not.
   *
   * @throws RuntimeFault HF-5101 unknown, HF-5102 wrong input, HF-5103 or a code of the tool's own when it failed,
   *   HF-5203 (or the reason, when it is a fault) when the signal aborted
   */
  run(name: string, input: unknown, context: ToolContext): Promise<ToolResultContent>;
}

/** @throws RuntimeFault HF-1001 when two tools have one name */
export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  if (byName.size < tools.length) {
    const names = tools.map((tool) => tool.definition.name).join(", ");
    throw new RuntimeFault("HF-1001", `Toolbox: two tools have one name among ${names}. Rename one.`);
  }
  return {
    definitions: () => tools.map((tool) => tool.definition),
    has: (name) => byName.has(name),
    run: async (name, input, context) => {
      const tool = byName.get(name);
      if (tool === undefined) {
        const known = [...byName.keys()].join(", ") || "none";
        throw new ToolFault("HF-5101", `Tool ${quoted(name)}: there is none here. Available: ${known}.`);
      }
      return boundedContent(toText(name, await invoke(tool, input, context)), tool.maxResultBytes);
    },
  };
}

async function invoke(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutput> {
  const { signal } = context;
  const { name } = tool.definition;
  if (signal.aborted) throw cancelled(name, signal);
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(cancelled(name, signal));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([tool.invoke(input, context), aborted.promise]);
  } catch (error) {
    if (signal.aborted) throw cancelled(name, signal);
    if (error instanceof RuntimeFault) throw error;
    throw new ToolFault("HF-5103", `Tool ${name}: failed. ${briefly(error)}`, { cause: error });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function cancelled(name: string, signal: AbortSignal): RuntimeFault {
  if (signal.reason instanceof RuntimeFault) return signal.reason;
  return new ToolFault("HF-5203", `Tool ${name}: the call was cancelled. It may have had effects.`);
}

function toText(name: string, output: ToolOutput): string {
  if (typeof output === "string") return output;
  let cause: unknown;
  try {
    // Proof of the type: stringify gives undefined for a function or undefined, whatever its declaration says.
    const text: string | undefined = JSON.stringify(output);
    if (text !== undefined) return text;
  } catch (error) {
    cause = error;
  }
  throw new ToolFault("HF-5103", `Tool ${name}: what it returned is no JSON. It is a mistake of the tool.`, { cause });
}

function boundedContent(text: string, maxBytes: number): ToolResultContent {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return { content: text, isTruncated: false };
  const note = `\n[The beginning of ${bytes} bytes. The rest was left out: ask for less at a time.]`;
  return { content: headOf(text, Math.max(0, maxBytes - Buffer.byteLength(note))) + note, isTruncated: true };
}

/** The longest beginning of a text that fits into `maxBytes` of UTF-8 without splitting a character. */
function headOf(text: string, maxBytes: number): string {
  const bytes = new Uint8Array(maxBytes);
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}
