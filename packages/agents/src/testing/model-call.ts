import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { RuntimeFault } from "@holdfast/protocol";
import { expect } from "vitest";
import type { ModelCallContext, ModelPort, ModelRequest } from "../model-port.ts";
import { createOpenAiCompatibleModel, type OpenAiCompatibleOptions } from "../openai-compatible-model.ts";
import { startRawEndpoint, type RawEndpoint } from "./raw-endpoint.ts";

/** Planted in every call and every error of an endpoint; none of them may come out. */
export const KEY = "sk-planted-key-7c1f";
export const PROMPT = "planted-prompt-4b9a";
export const INSTRUCTIONS = "planted-instructions-88d2";
export const BODY = "planted-body-15e0";

/** Endpoints of one test file; close them after each test. */
export function endpointPool(): { readonly start: typeof startRawEndpoint; readonly closeAll: () => Promise<void> } {
  const started: RawEndpoint[] = [];
  return {
    start: async (answer) => {
      const endpoint = await startRawEndpoint(answer);
      started.push(endpoint);
      return endpoint;
    },
    closeAll: async () => {
      await Promise.all(started.splice(0).map((endpoint) => endpoint.close()));
    },
  };
}

/** A model that does not retry, unless told so, and then hardly waits. */
export const modelAt = (at: { readonly baseUrl: string }, options: Partial<OpenAiCompatibleOptions> = {}): ModelPort =>
  createOpenAiCompatibleModel({ baseUrl: at.baseUrl, apiKey: KEY, maxRetries: 0, retryBaseMs: 1, ...options });

export const requestOf = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  model: "m1",
  instructions: INSTRUCTIONS,
  messages: [{ role: "user", messageId: "u1", text: PROMPT }],
  tools: [],
  ...more,
});

export const contextOf = (more: Partial<ModelCallContext> = {}): ModelCallContext => ({
  signal: new AbortController().signal,
  idempotencyKey: "d-3.conversation.c1^g:1/model-1",
  attempt: 2,
  ...more,
});

/** Everything of an error that could end up in a log, a record or a reply. */
export function everythingOf(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at instanceof Error && depth < 10; at = at.cause, depth += 1) {
    const own = Object.getOwnPropertyNames(at).map(
      (name) => `${name}=${inspect(Reflect.get(at as object, name), { depth: 20 })}`,
    );
    parts.push(
      String(at),
      at.message,
      at.stack ?? "",
      JSON.stringify(at),
      inspect(at, { depth: 20, showHidden: true }),
      ...own,
    );
  }
  return parts.join("\n");
}

/** The fault a call ends with, after a look for everything planted. */
export async function faultOf(call: Promise<unknown>): Promise<RuntimeFault> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof RuntimeFault)) throw new Error(`No fault: ${inspect(error)}`);
  const everything = everythingOf(error);
  for (const secret of [KEY, PROMPT, INSTRUCTIONS, BODY]) expect(everything).not.toContain(secret);
  return error;
}

/** Answers with a status, and an error that echoes what it was sent. */
export function sendStatus(
  response: ServerResponse,
  status: number,
  error: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message: `${BODY} ${KEY} ${PROMPT}`, ...error } }));
}
