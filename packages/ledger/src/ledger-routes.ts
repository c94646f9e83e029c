import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { countLedger } from "./count-ledger.ts";
import { readJsonBody, sendError, sendJson } from "./json-http.ts";
import type { Decision, LedgerBook } from "./ledger-book.ts";
import { AttemptLine, SettlementLine, formatLedgerLine } from "./ledger-line.ts";
import type { LedgerLog } from "./ledger-log.ts";
import type { LedgerProgress } from "./ledger-progress.ts";

// Strict: a misspelt field is evidence lost, so it is refused instead of dropped.
const Effect = AttemptLine.omit({ line: true, attempt: true, at: true }).strict();
const Settlement = SettlementLine.omit({ line: true, at: true }).strict();

const Count = z.coerce.number().int().min(0).default(0);
const Wait = z.object({
  attempts: Count,
  applied: Count,
  settled: Count,
  timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
});

/** What the routes work on. */
export type LedgerContext = {
  readonly book: LedgerBook;
  readonly log: LedgerLog;
  readonly progress: LedgerProgress;
  readonly nowMs: () => number;
};

/** `POST /effects {callId, idempotencyKey, kind, detail?, node?}` → `{applied, first, attempt}`. */
export async function serveEffect(
  request: IncomingMessage,
  response: ServerResponse,
  context: LedgerContext,
): Promise<void> {
  const effect = await parseBody(request, response, Effect);
  if (effect === undefined) return;
  const decision = context.book.effect(effect, context.nowMs());
  await write(decision, context, 0);
  sendJson(response, 200, decision.answer);
}

/** `POST /settlements {callId, outcome}` → `{settled, outcome}`. */
export async function serveSettlement(
  request: IncomingMessage,
  response: ServerResponse,
  context: LedgerContext,
): Promise<void> {
  const body = await parseBody(request, response, Settlement);
  if (body === undefined) return;
  const decision = context.book.settle(body.callId, body.outcome, context.nowMs());
  await write(decision, context, decision.answer.settled ? 1 : 0);
  sendJson(response, 200, decision.answer);
}

/** `GET /figures` → `LedgerFigures`, counted anew from the lines on disk. */
export async function serveFigures(response: ServerResponse, context: LedgerContext): Promise<void> {
  sendJson(response, 200, countLedger(await context.log.readLines()));
}

/** `GET /entries` → the durable log itself, JSON lines. */
export async function serveEntries(response: ServerResponse, context: LedgerContext): Promise<void> {
  const lines = await context.log.readLines();
  response.writeHead(200, { "content-type": "application/x-ndjson; charset=utf-8" });
  response.end(lines.map((line) => `${line}\n`).join(""));
}

/**
 * `GET /wait?attempts=&applied=&settled=&timeoutMs=`: a long poll until every count is reached.
 *
 * Answers 200 `{kind: "reached", attempts, applied, settled}` or 408 `{kind: "timed-out", …}`.
 * Defaults: 0, 0, 0, 30000.
 */
export async function serveWait(
  url: URL,
  response: ServerResponse,
  context: LedgerContext,
  gone: AbortSignal,
): Promise<void> {
  const wait = Wait.safeParse(Object.fromEntries(url.searchParams));
  if (!wait.success) {
    sendError(response, 400, describe(wait.error, "query"));
    return;
  }
  const { timeoutMs, ...goal } = wait.data;
  const signal = AbortSignal.any([gone, AbortSignal.timeout(timeoutMs)]);
  const isReached = await context.progress.reach(goal, signal);
  if (gone.aborted) return;
  const kind = isReached ? "reached" : "timed-out";
  sendJson(response, isReached ? 200 : 408, { kind, ...context.progress.now });
}

async function write(decision: Decision<object>, context: LedgerContext, settled: number): Promise<void> {
  const { lines } = decision;
  await context.log.append(lines.map(formatLedgerLine).join(""));
  context.progress.add({
    attempts: lines.filter((line) => line.line === "attempt").length,
    applied: lines.filter((line) => line.line === "applied").length,
    settled,
  });
}

async function parseBody<T>(
  request: IncomingMessage,
  response: ServerResponse,
  schema: z.ZodType<T>,
): Promise<T | undefined> {
  const body = await readJsonBody(request);
  if (body.kind === "invalid") {
    sendError(response, body.status, body.message);
    return undefined;
  }
  const parsed = schema.safeParse(body.value);
  if (parsed.success) return parsed.data;
  sendError(response, 400, describe(parsed.error, "body"));
  return undefined;
}

function describe(error: z.ZodError, whole: string): string {
  const issue = error.issues[0];
  return `${issue?.path.join(".") || whole}: ${issue?.message}`;
}
