import { AgentDefinition, Payer, RuntimeFault, type ModelReply, type TranscriptMessage } from "@holdfast/protocol";
import { silentTelemetry, type Telemetry } from "@holdfast/runtime/ports";
import { z } from "zod";
import { condenseRequest } from "./condense-request.ts";
import { PAID_OUTPUT_TOKENS } from "./call-cost.ts";
import type { ModelCallContext, ModelPort, ModelRequest } from "./model-port.ts";
import { PaidCall, type ReserveMoney } from "./paid-call.ts";
import type { Toolbox } from "./toolbox.ts";

/** What the jobs need to know of the runtime's job context, which fits. */
export interface AgentJobContext {
  /** Idempotency key: the same for every attempt of this job, never used by another one. */
  readonly key: string;
  readonly actorKey: string;
  readonly genesis: string;
  /** Revision of the commit that decided the job. */
  readonly rev: number;
  /** From 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}

/** A piece of an answer on its way. Volatile: it may be lost, and starts over with every (attempt, tries). */
export interface TokenReport {
  readonly actorKey: string;
  readonly jobKey: string;
  readonly attempt: number;
  /** Try within the attempt, from 1. */
  readonly tries: number;
  /** Position among the pieces of this try, from 0. */
  readonly index: number;
  readonly text: string;
}

/** A tool is about to run, or has run. */
export interface EffectReport {
  readonly phase: "before" | "after";
  readonly actorKey: string;
  readonly genesis: string;
  readonly callId: string;
  readonly idempotencyKey: string;
  /** Name of the tool. */
  readonly kind: string;
  readonly attempt: number;
  /** Only after: whether the tool gave a result. */
  readonly outcome?: "completed" | "failed";
}

/** The transcript of a conversation up to and including a revision; its journal is stored that far. */
export interface WantedTranscript {
  readonly conversation: string;
  readonly throughRev: number;
  /** User messages to show; absent: all. */
  readonly messagesTaken?: number;
}

export interface AgentJobsOptions {
  readonly model: ModelPort;
  readonly toolbox: Toolbox;
  readonly readTranscript: (wanted: WantedTranscript, signal: AbortSignal) => Promise<readonly TranscriptMessage[]>;
  /** Must not throw and not block. */
  readonly onToken?: (token: TokenReport) => void;
  /** What it throws is the outcome of the job; before the tool, the tool does not run. */
  readonly reportEffect?: (report: EffectReport, signal: AbortSignal) => Promise<void>;
  readonly telemetry?: Telemetry;
  /** Where the calls of conversations with a budget are paid from. Without it they are refused. */
  readonly reserve?: ReserveMoney;
}

/** What a tool's job returns: the machine makes the call's result of it. */
export interface ToolJobOutput {
  readonly ok: boolean;
  /** Text of the tool, or JSON `{"error":{"cause","code","message"}}`. */
  readonly content: string;
}

/** Implementations of the jobs of a conversation. */
export interface AgentJobs {
  /** Job `model.generate`. @throws ModelFault; what `reserve` throws; RuntimeFault HF-1001 for a wrong input; what `readTranscript` throws */
  readonly generate: (input: unknown, job: AgentJobContext) => Promise<ModelReply>;
  /**
   * Jobs `tool.run.*`. A tool that fails is an answer to the model, not a failed job.
   *
   * @throws RuntimeFault HF-1001 for a wrong input, HF-5203 when the job is stopped; what `reportEffect` throws
   */
  readonly runTool: (input: unknown, job: AgentJobContext) => Promise<ToolJobOutput>;
}

// Loose: the machine adds fields that are none of our business.
const ModelInput = z.looseObject({
  agent: AgentDefinition,
  conversation: z.string().optional(),
  throughRev: z.number().optional(),
  messagesTaken: z.number().optional(),
  purpose: z.literal("condense").optional(),
  nudge: z.string().optional(),
  payer: Payer.optional(),
});
const ToolInput = z.looseObject({
  agent: z.string().default(""),
  conversation: z.string().optional(),
  callId: z.string(),
  name: z.string(),
  input: z.unknown().optional(),
});

export function createAgentJobs(options: AgentJobsOptions): AgentJobs {
  const telemetry = options.telemetry ?? silentTelemetry;
  return {
    generate: async (input, job) => generate(options, telemetry, parseInput("model.generate", ModelInput, input), job),
    runTool: async (input, job) => runTool(options, telemetry, parseInput("tool.run", ToolInput, input), job),
  };
}

async function generate(
  options: AgentJobsOptions,
  telemetry: Telemetry,
  input: z.output<typeof ModelInput>,
  job: AgentJobContext,
): Promise<ModelReply> {
  const { agent, conversation = job.actorKey, throughRev = job.rev, messagesTaken, purpose, nudge, payer } = input;
  const wanted = { conversation, throughRev, ...(messagesTaken !== undefined && { messagesTaken }) };
  const transcript = await options.readTranscript(wanted, job.signal);
  const messages = nudge === undefined ? transcript : [...transcript, saidBesides(nudge)];
  let tries = 1;
  let index = 0;
  const { model, instructions, tools, limits, prices } = agent;
  const maxOutputTokens = limits.maxOutputTokens ?? (payer === undefined ? undefined : PAID_OUTPUT_TOKENS);
  const request: ModelRequest = {
    ...(purpose === "condense" ? condenseRequest(model, messages) : { model, instructions, messages, tools }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  };
  const context: ModelCallContext = {
    signal: job.signal,
    idempotencyKey: job.key,
    attempt: job.attempt,
    onToken: (text) => {
      options.onToken?.({ actorKey: job.actorKey, jobKey: job.key, attempt: job.attempt, tries, index, text });
      index += 1;
    },
    onRetry: ({ fault, tries: done, delayMs }) => {
      tries = done + 1;
      index = 0;
      telemetry.warn("model.retried", { job: job.key, code: fault.code, ...fault.facts, delayMs });
    },
  };
  if (payer === undefined) return options.model.generate(request, context);
  const reserve = options.reserve ?? nobodyPays;
  const paid = new PaidCall({ reserve, payer, job: job.key, request, prices, signal: job.signal, telemetry });
  try {
    return await paid.answered(await options.model.generate(request, { ...context, tries: paid }));
  } finally {
    await paid.abandoned();
  }
}

const nobodyPays: ReserveMoney = () =>
  Promise.reject(
    new RuntimeFault(
      "HF-3001",
      "Model call: its conversation has a budget, and this node no wallets. Give it `reserve`.",
    ),
  );

const saidBesides = (text: string): TranscriptMessage => ({ role: "user", messageId: "nudge", text });

async function runTool(
  options: AgentJobsOptions,
  telemetry: Telemetry,
  input: z.output<typeof ToolInput>,
  job: AgentJobContext,
): Promise<ToolJobOutput> {
  const { agent, callId, conversation = job.actorKey, name } = input;
  const { actorKey, attempt, genesis, signal } = job;
  const effect = { actorKey, genesis, callId, idempotencyKey: job.key, kind: name, attempt };
  await options.reportEffect?.({ phase: "before", ...effect }, signal);
  const context = { signal, callId, idempotencyKey: job.key, attempt, conversation, agent };
  const output = await tryTool(options.toolbox, { name, input: input.input }, context);
  if (output.fault !== undefined) telemetry.warn("tool.failed", { job: job.key, tool: name, code: output.fault.code });
  await options.reportEffect?.({ phase: "after", ...effect, outcome: output.ok ? "completed" : "failed" }, signal);
  return { ok: output.ok, content: output.content };
}

async function tryTool(
  toolbox: Toolbox,
  call: { readonly name: string; readonly input: unknown },
  context: Parameters<Toolbox["run"]>[2],
): Promise<ToolJobOutput & { readonly fault?: RuntimeFault }> {
  try {
    const { content } = await toolbox.run(call.name, call.input, context);
    return { ok: true, content };
  } catch (fault) {
    // Nobody waits for the answer of a stopped job, and a mistake of ours is none of the tool.
    if (context.signal.aborted || !(fault instanceof RuntimeFault)) throw fault;
    const error = { cause: "toolError", code: fault.code, message: fault.message };
    return { ok: false, content: JSON.stringify({ error }), fault };
  }
}

function parseInput<Schema extends z.ZodType>(job: string, schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new RuntimeFault(
    "HF-1001",
    `Job ${job}: its input does not fit (${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}). Look at the machine.`,
  );
}
