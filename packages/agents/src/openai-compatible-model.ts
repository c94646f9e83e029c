// OpenAiCompatibleModel — one step of a model behind an OpenAI-compatible endpoint.
// Owns: the tries of a call, their connections and timers.  Does not own: the loop of an agent, running tools, budgets.
//   M1 one-owner-of-retries  the SDK never retries; every try is made here and reported
//   M2 nothing-leaks         no error holds a prompt, an answer, a key or a cause (the causes of the SDK hold the request)
//   M3 nothing-lingers       when a call ends, for whatever reason, its connection and its timer are gone
//   M4 no-telemetry          the SDK is told to observe nothing: by default it records prompts

import { createHash } from "node:crypto";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { RuntimeFault, type ModelReply, type ToolDefinition } from "@holdfast/protocol";
import { jsonSchema, streamText, tool, type ToolSet } from "ai";
import { z } from "zod";
import { CallWatchdog } from "./call-watchdog.ts";
import type { ModelCallContext, ModelPort, ModelRequest } from "./model-port.ts";
import { cancelledCall, modelFault, unreadableProblem, type ModelProblem, type ModelTarget } from "./model-problem.ts";
import { ModelTransport } from "./model-transport.ts";
import { toProviderMessages } from "./provider-messages.ts";
import { readReply } from "./read-reply.ts";
import { pause, retryDelayMs } from "./retry-delay.ts";

// The HTTP client of Node ends a wait at 300 s by itself; a longer one would be a promise it does not keep.
const waitMs = z.int().min(1).max(300_000);

const Options = z.object({
  /** Ends before `/chat/completions`, usually in `/v1`. */
  baseUrl: z.url({ protocol: /^https?$/ }).refine((text) => {
    const { username, password, search, hash } = new URL(text);
    return username + password + search + hash === "";
  }, "without user, password, query and fragment; give the key as apiKey"),
  apiKey: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "printable characters without spaces")
    .optional(),
  timeouts: z
    .object({ connectMs: waitMs.default(10_000), firstTokenMs: waitMs.default(60_000), idleMs: waitMs.default(60_000) })
    .prefault({}),
  /** Tries after the first one. */
  maxRetries: z.int().min(0).max(10).default(2),
  /** Wait before the first retry; doubles up to 16 times this. */
  retryBaseMs: z.int().min(1).max(60_000).default(500),
  /** Longest wait an endpoint may ask for. */
  maxRetryAfterMs: z.int().min(0).max(300_000).default(30_000),
  /** Characters of text and arguments of one answer; more is a fault. What a job returns has to fit into one message. */
  maxReplyCharacters: z.int().min(1).max(1_000_000).default(200_000),
  /** 0 ≤ n < 1, for the spread of the waits. */
  random: z.custom<() => number>((value) => typeof value === "function").default(() => Math.random),
});
export type OpenAiCompatibleOptions = z.input<typeof Options>;

/** Bytes of a whole answer: each token travels in an event of some hundred bytes. */
const BYTES_PER_CHARACTER = 400;

/**
 * A model behind an OpenAI-compatible endpoint.
 *
 * Repeated, up to `maxRetries` times: over the rate limit (after the time asked for, capped), 5xx, no connection, too slow,
 * cut off; an unreadable answer once. Everything else is thrown at once.
 *
 * @throws RuntimeFault HF-1001 when the options do not fit; it does not repeat them
 */
export function createOpenAiCompatibleModel(options: OpenAiCompatibleOptions): ModelPort {
  const parsed = Options.safeParse(options);
  if (!parsed.success) {
    throw new RuntimeFault("HF-1001", `Model endpoint: its options do not fit. ${z.prettifyError(parsed.error)}`);
  }
  const settings = parsed.data;
  return { generate: (request, context) => generate(settings, request, context) };
}

type Settings = z.output<typeof Options>;
type TryOutcome =
  | { readonly kind: "reply"; readonly reply: ModelReply }
  | { readonly kind: "problem"; readonly problem: ModelProblem };

async function generate(settings: Settings, request: ModelRequest, context: ModelCallContext): Promise<ModelReply> {
  const { signal } = context;
  const target = { endpoint: new URL(settings.baseUrl).host, model: request.model };
  let onceUsed = false;
  for (let tries = 1; ; tries += 1) {
    if (signal.aborted) throw reasonOf(signal, target);
    await context.tries?.begin();
    const outcome = await tryOnce(settings, request, context);
    if (outcome.kind === "reply") return outcome.reply;
    if (signal.aborted) throw reasonOf(signal, target);
    const { problem } = outcome;
    const fault = modelFault(problem, target, tries);
    await context.tries?.failed(fault);
    const isLast = tries > settings.maxRetries || problem.retry === "never" || (problem.retry === "once" && onceUsed);
    if (isLast) throw fault;
    onceUsed ||= problem.retry === "once";
    const delayMs = retryDelayMs(
      {
        baseMs: settings.retryBaseMs,
        maxMs: settings.retryBaseMs * 16,
        maxRetryAfterMs: settings.maxRetryAfterMs,
        random: settings.random,
      },
      tries,
      problem.retryAfterMs,
    );
    context.onRetry?.({ fault, tries, delayMs });
    await pause(delayMs, signal);
  }
}

async function tryOnce(settings: Settings, request: ModelRequest, context: ModelCallContext): Promise<TryOutcome> {
  const watchdog = new CallWatchdog(settings.timeouts);
  const end = new AbortController();
  const transport = new ModelTransport({
    maxBytes: settings.maxReplyCharacters * BYTES_PER_CHARACTER,
    onHeaders: () => watchdog.enter("firstToken"),
  });
  try {
    const { stream } = streamText({
      ...modelAndPrompt(settings, request, transport),
      headers: { "idempotency-key": headerValue(context.idempotencyKey), "x-holdfast-attempt": `${context.attempt}` },
      abortSignal: AbortSignal.any([context.signal, watchdog.signal, end.signal]),
      maxRetries: 0, // M1
      telemetry: { isEnabled: false }, // M4
      onError: () => undefined, // M2: without it the SDK prints the request to stderr
    });
    const outcome = await readReply(stream, {
      maxCharacters: settings.maxReplyCharacters,
      onText: (text) => context.onToken?.(text),
      onToken: () => watchdog.enter("idle"),
    });
    if (outcome.kind === "reply") return outcome;
    // The connection knows best what happened to it; what the SDK made of that is a guess.
    const found = transport.problem ?? watchdog.problem;
    const problem = found ?? (outcome.kind === "problem" ? outcome.problem : unreadableProblem("gave no answer"));
    return { kind: "problem", problem };
  } finally {
    watchdog.stop();
    end.abort(new Error("The call is over.")); // M3
  }
}

function modelAndPrompt(settings: Settings, request: ModelRequest, transport: ModelTransport) {
  const provider = createOpenAICompatible({
    name: "endpoint",
    baseURL: settings.baseUrl,
    includeUsage: true,
    fetch: transport.fetch,
    ...(settings.apiKey === undefined ? {} : { apiKey: settings.apiKey }),
  });
  return {
    model: provider.chatModel(request.model),
    messages: toProviderMessages(request.messages),
    ...(request.instructions === "" ? {} : { instructions: request.instructions }),
    ...(request.tools.length === 0 ? {} : { tools: toolSet(request.tools) }),
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
  };
}

/** Tools without `execute`: the SDK runs nothing. */
function toolSet(definitions: readonly ToolDefinition[]): ToolSet {
  return Object.fromEntries(
    definitions.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
}

/** Headers hold printable ASCII; any other key is replaced by its digest, which repeats as well. */
const headerValue = (key: string): string =>
  /^[\x21-\x7e]{1,255}$/.test(key) ? key : createHash("sha256").update(key).digest("hex");

function reasonOf(signal: AbortSignal, target: ModelTarget): Error {
  return signal.reason instanceof RuntimeFault ? signal.reason : cancelledCall(target);
}
