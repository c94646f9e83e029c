import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { readJsonBody, sendError, sendJson } from "./json-http.ts";
import type { RequestLog } from "./request-log.ts";

const Release = z.object({ match: z.string().min(1) });

const Wait = z.object({
  match: z.string().optional(),
  model: z.string().optional(),
  state: z.enum(["arrived", "blocked", "aborted", "answered"]).optional(),
  count: z.coerce.number().int().min(1).default(1),
  timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
});

/** `POST /control/release {match}` → `{released}`: how many held requests this call freed. */
export async function serveRelease(request: IncomingMessage, response: ServerResponse, log: RequestLog): Promise<void> {
  const body = await readJsonBody(request);
  const release = Release.safeParse(body.kind === "json" ? body.value : undefined);
  if (!release.success) {
    refuse(response, 'Send {"match": text}, where text is part of the last user message.');
    return;
  }
  sendJson(response, 200, { released: log.release(release.data.match) });
}

/** `GET /control/requests` → `{requests}`: everything seen, oldest first. */
export function serveRequests(response: ServerResponse, log: RequestLog): void {
  sendJson(response, 200, { requests: log.list() });
}

/**
 * `GET /control/wait?match=&model=&state=&count=&timeoutMs=`: a long poll.
 *
 * Answers 200 `{kind: "reached", requests}` as soon as `count` requests match, or 408
 * `{kind: "timed-out", requests}`. Defaults: all requests, `arrived`, 1, 30000.
 */
export async function serveWait(url: URL, response: ServerResponse, log: RequestLog, gone: AbortSignal): Promise<void> {
  const wait = Wait.safeParse(Object.fromEntries(url.searchParams));
  if (!wait.success) {
    const field = wait.error.issues[0]?.path.join(".");
    refuse(response, `The query parameter ${field} is not valid: ${wait.error.issues[0]?.message}`);
    return;
  }
  const { match, model, state, count, timeoutMs } = wait.data;
  const query = {
    ...(match === undefined ? {} : { match }),
    ...(model === undefined ? {} : { model }),
    ...(state === undefined ? {} : { state }),
  };
  const signal = AbortSignal.any([gone, AbortSignal.timeout(timeoutMs)]);
  const result = await log.waitFor(query, count, signal);
  if (gone.aborted) return;
  sendJson(response, result.kind === "reached" ? 200 : 408, result);
}

function refuse(response: ServerResponse, message: string): void {
  sendError(response, 400, { message, type: "invalid_request_error" });
}
