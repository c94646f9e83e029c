import type { IncomingMessage, ServerResponse } from "node:http";
import { pause, writeAnswer, writeFault } from "./answer-writer.ts";
import type { AnswerFormat } from "./answer-writer.ts";
import { tryChatRequest } from "./chat-request.ts";
import type { ChatRequest } from "./chat-request.ts";
import { completionOf } from "./completion.ts";
import { lastUserText } from "./dialogue.ts";
import { readJsonBody, sendError } from "./json-http.ts";
import type { RequestLog, SeenRequest } from "./request-log.ts";
import type { Script, ScriptStep } from "./script.ts";

/** What answering a chat needs from the server. */
export type ChatContext = {
  readonly scripts: ReadonlyMap<string, Script>;
  readonly log: RequestLog;
  readonly chunkDelayMs: number;
  readonly nowMs: () => number;
  /** An id no other request of any server has. */
  readonly newId: () => string;
};

/** `POST /v1/chat/completions`, streamed or whole. `gone` aborts when the client leaves. */
export async function serveChat(
  request: IncomingMessage,
  response: ServerResponse,
  context: ChatContext,
  gone: AbortSignal,
): Promise<void> {
  const body = await readJsonBody(request);
  if (body.kind === "invalid") {
    sendError(response, body.status, { message: body.message, type: "invalid_request_error" });
    return;
  }
  const parsed = tryChatRequest(body.value);
  if (parsed.kind === "invalid") {
    const { message, param } = parsed;
    sendError(response, 400, { message, param, type: "invalid_request_error" });
    return;
  }
  const chat = parsed.request;
  const script = context.scripts.get(chat.model);
  if (script === undefined) {
    sendError(response, 404, {
      message: `The model ${chat.model} does not exist. GET /v1/models lists those that do.`,
      type: "invalid_request_error",
      code: "model_not_found",
    });
    return;
  }
  const seen = context.log.arrive(seenFacts(chat, request));
  const step = script({
    messages: chat.messages,
    tools: chat.tools,
    attempt: context.log.attemptOf(seen),
  });
  response.once("close", () => {
    if (response.writableFinished) context.log.end(seen, "answered");
    else if (step.fault?.kind !== "cut") context.log.end(seen, "aborted");
  });
  await perform(step, { chat, seen, response, context, gone });
}

async function perform(
  step: ScriptStep,
  on: {
    readonly chat: ChatRequest;
    readonly seen: SeenRequest;
    readonly response: ServerResponse;
    readonly context: ChatContext;
    readonly gone: AbortSignal;
  },
): Promise<void> {
  const { chat, seen, response, context, gone } = on;
  const missing = step.toolCalls?.find((call) => !chat.tools.includes(call.name));
  if (missing !== undefined) {
    // A model can only call what it was offered; silence here would hide a wrong agent definition.
    sendError(response, 400, {
      message: `The script ${chat.model} needs the tool ${missing.name}; the request offers: ${chat.tools.join(", ") || "none"}.`,
      type: "invalid_request_error",
      param: "tools",
      code: "tool_not_offered",
    });
    return;
  }
  if (step.block === true) await context.log.hold(seen, gone);
  if (step.delayMs !== undefined && step.delayMs > 0) await pause(step.delayMs, gone);
  if (gone.aborted) return;

  const format: AnswerFormat = { ...chat, chunkDelayMs: context.chunkDelayMs };
  const completion = completionOf(step, {
    id: context.newId(),
    nowMs: context.nowMs(),
    model: chat.model,
    messages: chat.messages,
  });
  await (step.fault === undefined
    ? writeAnswer(response, completion, format, gone)
    : writeFault(response, step.fault, completion, format, gone));
}

function seenFacts(chat: ChatRequest, request: IncomingMessage) {
  const idempotencyKey = headerOf(request, "idempotency-key");
  const holdfastAttempt = headerOf(request, "x-holdfast-attempt");
  return {
    model: chat.model,
    lastUser: lastUserText(chat.messages),
    messageCount: chat.messages.length,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(holdfastAttempt === undefined ? {} : { holdfastAttempt }),
  };
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
