import { RuntimeFault, ToolDefinition, type CrashPolicy } from "@holdfast/protocol";
import { z } from "zod";
import { ToolFault } from "./tool-fault.ts";

/** Bytes of UTF-8 of one result. More costs every later model call of the conversation. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** What a tool knows about the call it carries out. */
export interface ToolContext {
  /** Aborts when nobody wants the result any more. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** The same for every attempt of this call, never used by another one. */
  readonly idempotencyKey: string;
  /** From 1. */
  readonly attempt: number;
  /** Key of the conversation that calls. */
  readonly conversation: string;
  /** Name of the agent that calls. */
  readonly agent: string;
}

/** What a tool gives back: text as it is, anything else as JSON. */
export type ToolOutput = string | object;

/** How the model sees a tool. */
export interface ToolDescription<Input extends z.ZodType> {
  readonly name: string;
  readonly description: string;
  /** An object schema without transformations that JSON Schema cannot say. */
  readonly input: Input;
  /** What happens to a call whose node died: see `CrashPolicy`. */
  readonly crashPolicy: CrashPolicy;
}

export interface ToolSpec<Input extends z.ZodType> extends ToolDescription<Input> {
  /** May throw anything; a `ToolFault` reaches the model as it is, the first line of any other error as HF-5103. */
  readonly run: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutput> | ToolOutput;
  /** Bytes of UTF-8 of one result; a longer one is cut. Default {@link MAX_RESULT_BYTES}. */
  readonly maxResultBytes?: number;
}

/** A tool that a node can run. */
export interface Tool {
  readonly definition: ToolDefinition;
  readonly maxResultBytes: number;
  /** @throws ToolFault HF-5102 when the input does not fit; whatever the tool throws */
  readonly invoke: (input: unknown, context: ToolContext) => Promise<ToolOutput>;
}

/**
 * Declares a tool.
 *
 * @throws RuntimeFault HF-1001 when its name or schema cannot be shown to a model
 */
export function defineTool<Input extends z.ZodType>(spec: ToolSpec<Input>): Tool {
  return {
    definition: describeTool(spec),
    maxResultBytes: spec.maxResultBytes ?? MAX_RESULT_BYTES,
    invoke: async (input, context) => {
      const parsed = spec.input.safeParse(input);
      if (parsed.success) return spec.run(parsed.data, context);
      throw new ToolFault(
        "HF-5102",
        `Tool ${spec.name}: ${describeMismatch(parsed.error)}. Correct the input, call again.`,
      );
    },
  };
}

/** The definition of a tool without anything to run, for agents whose tools run elsewhere. @throws RuntimeFault HF-1001 */
export function describeTool<Input extends z.ZodType>(
  description: ToolDescription<Input>,
  kind: ToolDefinition["kind"] = "local",
): ToolDefinition {
  const { name, crashPolicy } = description;
  const parsed = ToolDefinition.safeParse({
    name,
    description: description.description,
    inputSchema: inputSchemaOf(name, description.input),
    kind,
    crashPolicy,
  });
  if (parsed.success) return parsed.data;
  throw new RuntimeFault("HF-1001", `Tool ${name}: its definition does not fit. ${z.prettifyError(parsed.error)}`);
}

function inputSchemaOf(name: string, input: z.ZodType): Record<string, unknown> {
  let schema: Record<string, unknown>;
  try {
    schema = z.toJSONSchema(input, { io: "input" });
  } catch (cause) {
    throw new RuntimeFault("HF-1001", `Tool ${name}: its input has no JSON Schema. Leave out what JSON cannot say.`, {
      cause,
    });
  }
  const { $schema: _dialect, ...rest } = schema; // some endpoints refuse keywords they do not know
  if (rest["type"] === "object") return rest;
  throw new RuntimeFault("HF-1001", `Tool ${name}: its input is no object. Models send an object; wrap the value.`);
}

function describeMismatch(error: z.ZodError): string {
  const shown = error.issues.slice(0, 5).map(({ path, message }) => {
    const place = path.length === 0 ? "the input" : path.map(String).join(".");
    return `${place}: ${message}`;
  });
  return shown.join("; ").slice(0, 1000);
}
