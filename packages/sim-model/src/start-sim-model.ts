// SimModel — the server: one port, its routes, its life.
// Owns: the listener and every open connection.  Does not own: the process (main.ts), the scripts.
//   M1 loopback-only   it listens on 127.0.0.1 and nowhere else
//   M2 close-is-final  after close() no connection is open and no request is held

import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { serveChat } from "./chat-route.ts";
import type { ChatContext } from "./chat-route.ts";
import { serveRelease, serveRequests, serveWait } from "./control-routes.ts";
import { sendError, sendJson } from "./json-http.ts";
import { RequestLog } from "./request-log.ts";
import type { RequestQuery, SeenRequest, WaitResult } from "./request-log.ts";
import type { Script } from "./script.ts";
import { standardScripts } from "./scripts/standard-scripts.ts";
import { SimModelFault } from "./sim-model-fault.ts";

/** All optional: a port of the system's choosing, the standard scripts, no key, no delays. */
export type SimModelOptions = {
  /** TCP port on 127.0.0.1; 0 (default) lets the system choose. */
  readonly port?: number;
  /** More models by name; one with the name of a standard script replaces it. */
  readonly scripts?: Readonly<Record<string, Script>>;
  /** When given, `/v1/*` demands `Authorization: Bearer <apiKey>`. */
  readonly apiKey?: string;
  /** Milliseconds between two events of a stream; default 0. */
  readonly chunkDelayMs?: number;
  /** Milliseconds before the first token of `survey-reader`; default 0. */
  readonly thinkMs?: number;
};

/** A running simulated model. */
export type SimModel = {
  /** Origin without a trailing slash; an OpenAI client's base URL is `${url}/v1`. */
  readonly url: string;
  readonly port: number;
  /** Every valid request so far, oldest first. */
  requests(): readonly SeenRequest[];
  /** Frees held requests, now and in the future; returns how many were held. */
  release(match: string): number;
  /** Waits for at least `count` (default 1) matching requests, at most `timeoutMs` (30000). */
  waitForRequests(query: RequestQuery & { readonly count?: number; readonly timeoutMs?: number }): Promise<WaitResult>;
  /** Breaks every open connection and stops listening; may be called again. */
  close(): Promise<void>;
};

/**
 * Starts a scripted model behind an OpenAI-compatible HTTP server.
 *
 * @throws SimModelFault (`cannot-listen`) when the port is taken
 */
export async function startSimModel(options: SimModelOptions = {}): Promise<SimModel> {
  const log = new RequestLog(() => Date.now());
  const scripts = { ...standardScripts({ thinkMs: options.thinkMs ?? 0 }), ...options.scripts };
  const context: ChatContext = {
    scripts: new Map(Object.entries(scripts)),
    log,
    chunkDelayMs: options.chunkDelayMs ?? 0,
    nowMs: () => Date.now(),
    newId: () => randomBytes(9).toString("hex"),
  };
  const server = createServer((request, response) => {
    const gone = goneSignal(response);
    void route(request, response, { ...context, apiKey: options.apiKey }, gone).catch(() => answerFailure(response));
  });
  const port = await listen(server, options.port ?? 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests: () => log.list(),
    release: (match) => log.release(match),
    waitForRequests: ({ count = 1, timeoutMs = 30_000, ...query }) =>
      log.waitFor(query, count, AbortSignal.timeout(timeoutMs)),
    close: () => close(server),
  };
}

async function route(
  request: IncomingMessage,
  response: ServerResponse,
  context: ChatContext & { readonly apiKey: string | undefined },
  gone: AbortSignal,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  const { apiKey, log } = context;
  if (url.pathname.startsWith("/v1/") && apiKey !== undefined) {
    if (request.headers.authorization !== `Bearer ${apiKey}`) {
      request.resume();
      sendError(response, 401, {
        message: "The API key is missing or wrong. Send Authorization: Bearer <key>.",
        type: "authentication_error",
        code: "invalid_api_key",
      });
      return;
    }
  }
  switch (`${request.method} ${url.pathname}`) {
    case "POST /v1/chat/completions":
      return serveChat(request, response, context, gone);
    case "GET /v1/models":
      return sendJson(response, 200, { object: "list", data: modelsOf(context) });
    case "GET /health":
      return sendJson(response, 200, { status: "ok" });
    case "POST /control/release":
      return serveRelease(request, response, log);
    case "GET /control/requests":
      return serveRequests(response, log);
    case "GET /control/wait":
      return serveWait(url, response, log, gone);
    default:
      request.resume();
      sendError(response, 404, {
        message: `There is no ${request.method} ${url.pathname}.`,
        type: "invalid_request_error",
      });
  }
}

function modelsOf(context: ChatContext): readonly object[] {
  return [...context.scripts.keys()].map((id) => ({
    id,
    object: "model",
    created: 0,
    owned_by: "sim-model",
  }));
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

// A script that throws, or a client that left while sending. The cause may quote a prompt, so it
// is not repeated; a script is a pure function and can be run alone with the same messages.
function answerFailure(response: ServerResponse): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sendError(response, 500, { message: "The script threw an error.", type: "server_error" });
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new SimModelFault(
          "cannot-listen",
          `The simulated model cannot listen on 127.0.0.1:${port}. Choose another port, or 0.`,
          cause,
        ),
      ),
    );
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // M2: without this a held request would keep the server open for ever.
  server.closeAllConnections();
  await closed;
}
