import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { systemCodeOf } from "./known-reason.ts";
import { pause, retryDelayMs } from "./retry-delay.ts";

/** An effect as it is told to the ledger. */
export interface LedgerEffect {
  readonly callId: string;
  readonly idempotencyKey: string;
  readonly kind: string;
  readonly detail?: unknown;
  readonly node?: string;
}

const EffectAnswer = z.looseObject({ applied: z.boolean(), first: z.int(), attempt: z.int() });
const SettlementAnswer = z.looseObject({ settled: z.boolean(), outcome: z.string() });

export interface LedgerClient {
  /** @returns `applied`: this attempt changed the world; `attempt`: its number; `first`: number of the attempt that changed it */
  effect(effect: LedgerEffect, signal?: AbortSignal): Promise<z.output<typeof EffectAnswer>>;
  /** @returns the outcome the ledger keeps; `settled` is true when this call set it */
  settle(callId: string, outcome: string, signal?: AbortSignal): Promise<z.output<typeof SettlementAnswer>>;
}

export interface LedgerClientOptions {
  /** Of one try, headers and body. Default 5000. */
  readonly timeoutMs?: number;
  /** Tries after the first one, when the ledger gives no answer. Each is an attempt of its own in the ledger. Default 3. */
  readonly maxRetries?: number;
  /** Wait before the first retry; doubles. Default 100. */
  readonly retryBaseMs?: number;
}

/**
 * A client of the ledger, the outside world of the demo that counts what was done to it.
 *
 * @param url  origin, without a trailing slash
 * @throws RuntimeFault HF-4008 (retryable) when it gives no answer or fails, HF-1001 when it refuses the content,
 *   HF-5203 when `signal` aborted
 */
export function createLedgerClient(url: string, options: LedgerClientOptions = {}): LedgerClient {
  const settings = { url, timeoutMs: 5000, maxRetries: 3, retryBaseMs: 100, ...options };
  return {
    effect: (effect, signal) => post(settings, "/effects", effect, EffectAnswer, signal),
    settle: (callId, outcome, signal) => post(settings, "/settlements", { callId, outcome }, SettlementAnswer, signal),
  };
}

type Settings = Required<LedgerClientOptions> & { readonly url: string };

async function post<Schema extends z.ZodType>(
  settings: Settings,
  path: string,
  body: object,
  answer: Schema,
  signal: AbortSignal = new AbortController().signal,
): Promise<z.output<Schema>> {
  const pacing = { baseMs: settings.retryBaseMs, maxMs: 2000, maxRetryAfterMs: 0, random: Math.random };
  for (let tries = 1; ; tries += 1) {
    const outcome = await tryPost(settings, path, body, signal);
    if (outcome.kind === "answered") return readAnswer(settings, outcome, answer);
    if (!signal.aborted && tries <= settings.maxRetries) await pause(retryDelayMs(pacing, tries, undefined), signal);
    if (signal.aborted) throw cancelled(settings, signal);
    if (tries > settings.maxRetries) throw silent(settings, outcome.why, tries);
  }
}

type PostOutcome =
  | { readonly kind: "answered"; readonly status: number; readonly text: string }
  | { readonly kind: "silent"; readonly why: string };

async function tryPost(settings: Settings, path: string, body: object, signal: AbortSignal): Promise<PostOutcome> {
  const timeout = AbortSignal.timeout(settings.timeoutMs);
  try {
    const response = await fetch(`${settings.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, timeout]),
    });
    const text = await response.text();
    if (response.status >= 500) return { kind: "silent", why: `status ${response.status}` };
    return { kind: "answered", status: response.status, text };
  } catch (error) {
    if (timeout.aborted) return { kind: "silent", why: `nothing within ${settings.timeoutMs} ms` };
    return { kind: "silent", why: systemCodeOf(error) ?? "the connection broke" };
  }
}

function readAnswer<Schema extends z.ZodType>(
  settings: Settings,
  { status, text }: Extract<PostOutcome, { kind: "answered" }>,
  answer: Schema,
): z.output<Schema> {
  if (status !== 200) {
    throw new RuntimeFault(
      "HF-1001",
      `Ledger at ${settings.url}: it refused the request with status ${status}. Look at what was sent.`,
      {
        facts: { status },
      },
    );
  }
  try {
    return answer.parse(JSON.parse(text));
  } catch (cause) {
    throw new RuntimeFault("HF-1001", `Ledger at ${settings.url}: its answer is none of a ledger. Check the address.`, {
      cause,
    });
  }
}

const silent = (settings: Settings, why: string, tries: number): RuntimeFault =>
  new RuntimeFault(
    "HF-4008",
    `Ledger at ${settings.url}: no answer in ${tries} tries (${why}). Start it, then try again.`,
    {
      facts: { tries, retryable: true },
    },
  );

function cancelled(settings: Settings, signal: AbortSignal): RuntimeFault {
  if (signal.reason instanceof RuntimeFault) return signal.reason;
  return new RuntimeFault("HF-5203", `Ledger at ${settings.url}: the request was cancelled by its caller.`);
}
