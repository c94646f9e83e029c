import { AgentLimits, INHERITED_MODEL, ModelPrice, RuntimeFault } from "@holdfast/protocol";
import { parseDocument } from "yaml";
import { z } from "zod";

/** What a file says about an agent. */
const AgentFileFields = z.strictObject({
  /** Default: the name of the file. */
  name: z.string().optional(),
  description: z.string().max(500).optional(),
  model: z.string().min(1).max(128).default(INHERITED_MODEL),
  /** Of a Markdown file: the text below its front matter. */
  instructions: z.string().max(64_000).optional(),
  /** Names of tools of the application. */
  tools: z.array(z.string()).max(128).default([]),
  /** Names of agents it may delegate to. */
  delegates: z.array(z.string()).max(64).default([]),
  /** It can continue its tasks, run them in the background and in groups, and be asked by them. */
  resumable: z.boolean().default(true),
  limits: AgentLimits.partial().strict().default({}),
  prices: z.record(z.string(), ModelPrice).optional(),
  /** US dollars for one message of whoever it works for; the same as `limits.maxCostMicroUsd`. */
  max_budget_per_run: z.number().positive().max(1_000_000).optional(),
  /** Nobody is asked before a tool runs: what is so here anyway. */
  permission_mode: z.literal("never_confirm").optional(),
});
export type AgentFileFields = Readonly<z.infer<typeof AgentFileFields>>;

/** Known from other systems, and nothing here would keep their promise: a file that relies on one must not be taken for understood. */
const UNSUPPORTED = ["skills", "hooks", "mcp_config", "condenser", "profile_store_dir"];

const CONFIRMING = z.looseObject({ permission_mode: z.enum(["always_confirm", "confirm_risky"]) });

/**
 * Reads the definition of an agent: YAML, or Markdown with YAML front matter.
 *
 * @param file  its path, for messages; the ending decides
 * @throws RuntimeFault HF-5206 naming file and field
 */
export function parseAgentFile(file: string, text: string): AgentFileFields & { readonly instructions: string } {
  const isMarkdown = file.endsWith(".md");
  const { head, body } = isMarkdown ? frontMatterOf(file, text) : { head: text, body: undefined };
  const value = yamlOf(file, head);
  const unsupported = UNSUPPORTED.filter((field) => typeof value === "object" && value !== null && field in value);
  if (unsupported.length > 0) throw misfit(file, `${unsupported.join(", ")}: not supported by this build`);
  const confirming = CONFIRMING.safeParse(value).data?.permission_mode;
  if (confirming !== undefined)
    throw misfit(
      file,
      `permission_mode: ${confirming} is not supported by this build, which asks nobody before a tool runs`,
    );
  const parsed = AgentFileFields.safeParse(value);
  if (!parsed.success) throw misfit(file, z.prettifyError(parsed.error));
  const { instructions, limits, max_budget_per_run: budget } = parsed.data;
  if (budget !== undefined && limits.maxCostMicroUsd !== undefined)
    throw misfit(file, "max_budget_per_run: the same is said by limits.maxCostMicroUsd");
  if (body !== undefined && instructions !== undefined)
    throw misfit(file, "instructions: they stand below the front matter");
  return { ...parsed.data, instructions: body ?? instructions ?? "" };
}

function frontMatterOf(file: string, text: string): { readonly head: string; readonly body: string } {
  const found = /^\uFEFF?---\r?\n([\s\S]*?\r?\n)?---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(text);
  if (found === null) throw misfit(file, "it does not begin with front matter between two lines ---");
  return { head: found[1] ?? "", body: (found[2] ?? "").trim() };
}

function yamlOf(file: string, text: string): unknown {
  const document = parseDocument(text, { uniqueKeys: true, prettyErrors: true });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw misfit(file, problem.message.split("\n")[0] ?? problem.code);
  try {
    // An empty file says nothing, and everything has a default.
    return document.toJS({ maxAliasCount: 10 }) ?? {};
  } catch (cause) {
    throw misfit(file, "its aliases do not resolve", cause);
  }
}

export const misfit = (file: string, problem: string, cause?: unknown): RuntimeFault =>
  new RuntimeFault("HF-5206", `Agent file ${file}: ${problem}. Correct the file, or take it away.`, {
    facts: { file },
    ...(cause !== undefined && { cause }),
  });
