import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { streamEvents, STREAM_END } from "./completion-stream.ts";
import { wholeBody } from "./completion.ts";
import type { Completion } from "./completion.ts";
import { sendError, sendJson } from "./json-http.ts";
import type { Fault } from "./script.ts";

const EVENT_STREAM = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
const JSON_BODY = { "content-type": "application/json; charset=utf-8" };
const EVENTS_BEFORE_CUT = 3;
const CUT_AFTER_MS = 50;

/** How an answer is to be sent. */
export type AnswerFormat = {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Milliseconds between two events of a stream. */
  readonly chunkDelayMs: number;
};

/** Sends a whole answer; stops early, without an error, when `signal` aborts. */
export async function writeAnswer(
  response: ServerResponse,
  completion: Completion,
  format: AnswerFormat,
  signal: AbortSignal,
): Promise<void> {
  if (!format.stream) {
    sendJson(response, 200, wholeBody(completion));
    return;
  }
  response.writeHead(200, EVENT_STREAM);
  for (const event of streamEvents(completion, format.includeUsage)) {
    if (signal.aborted) return;
    response.write(event);
    if (format.chunkDelayMs > 0) await pause(format.chunkDelayMs, signal);
  }
  response.end(STREAM_END);
}

/** Misbehaves as told. `never` and `idle` resolve when `signal` aborts, so that nothing leaks. */
export async function writeFault(
  response: ServerResponse,
  fault: Fault,
  completion: Completion,
  format: AnswerFormat,
  signal: AbortSignal,
): Promise<void> {
  const headers = format.stream ? EVENT_STREAM : JSON_BODY;
  switch (fault.kind) {
    case "status": {
      const { retryAfterSeconds: seconds, status, ...error } = fault;
      const retry = seconds === undefined ? {} : { "retry-after": String(seconds) };
      sendError(response, status, { message: error.message, type: error.type }, retry);
      return;
    }
    case "garbage":
      response.writeHead(200, headers);
      response.end(format.stream ? 'data: {"choices":[{"delta":\n\n' : '{"choices":[{"message":');
      return;
    case "cut":
      response.writeHead(200, headers);
      response.write(beginning(completion, format, EVENTS_BEFORE_CUT));
      // A reset overtakes bytes the client has not read; without the pause it would see none.
      await pause(CUT_AFTER_MS, signal);
      response.destroy();
      return;
    case "idle":
      response.writeHead(200, headers);
      response.write(beginning(completion, format, 2));
      await aborted(signal);
      return;
    case "never":
      await aborted(signal);
      return;
  }
}

/** Waits; returns early, without an error, when `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (cause) {
    if (!signal.aborted) throw cause;
  }
}

function beginning(completion: Completion, format: AnswerFormat, events: number): string {
  if (!format.stream) return JSON.stringify(wholeBody(completion)).slice(0, 40);
  return [...streamEvents(completion, format.includeUsage)].slice(0, events).join("");
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
