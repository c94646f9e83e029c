// Ledger — the server: one port, its routes, its life.
// Owns: the listener, every open connection, the open log.  Does not own: the process (main.ts).
//   W1 loopback-only  it listens on 127.0.0.1 and nowhere else
//   W2 whole-log      it starts only with a log it can count; a torn last line is cut, nothing else

import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { countLedger } from "./count-ledger.ts";
import type { LedgerFigures } from "./count-ledger.ts";
import { sendError, sendJson } from "./json-http.ts";
import { LedgerBook } from "./ledger-book.ts";
import type { LedgerPlant } from "./ledger-book.ts";
import { LedgerFault } from "./ledger-fault.ts";
import { parseLedgerLine } from "./ledger-line.ts";
import { LedgerLog } from "./ledger-log.ts";
import { LedgerProgress } from "./ledger-progress.ts";
import { serveEffect, serveEntries, serveFigures, serveSettlement, serveWait } from "./ledger-routes.ts";
import type { LedgerContext } from "./ledger-routes.ts";

/** Where the ledger listens and writes. */
export type LedgerOptions = {
  /** TCP port on 127.0.0.1; 0 (default) lets the system choose. */
  readonly port?: number;
  /** Path of the log; created with its folder. One ledger at a time may use it. */
  readonly file: string;
  /** A fault to commit once, see {@link LedgerPlant}; default none. */
  readonly plant?: LedgerPlant;
};

/** A running ledger. */
export type Ledger = {
  /** Origin without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** The figures, counted anew from the lines on disk. */
  figures(): Promise<LedgerFigures>;
  /** Breaks every open connection, stops listening and closes the log; may be called again. */
  close(): Promise<void>;
};

/**
 * Starts a ledger: an outside world that counts what was done to it.
 *
 * @throws LedgerFault `bad-log` (W2), `cannot-write` or `cannot-listen`
 */
export async function startLedger(options: LedgerOptions): Promise<Ledger> {
  const log = await LedgerLog.open(options.file);
  try {
    const context = await readContext(log, options.plant);
    const server = createServer((request, response) => {
      const gone = goneSignal(response);
      void route(request, response, context, gone).catch((cause: unknown) => answerFailure(response, cause));
    });
    const port = await listen(server, options.port ?? 0);
    return {
      url: `http://127.0.0.1:${port}`,
      port,
      figures: async () => countLedger(await log.readLines()),
      close: async () => {
        if (!server.listening) return;
        await close(server);
        await log.close();
      },
    };
  } catch (cause) {
    await log.close();
    throw cause;
  }
}

async function readContext(log: LedgerLog, plant: LedgerPlant | undefined): Promise<LedgerContext> {
  const lines = await log.readLines();
  const { attempts, applied, settled } = countLedger(lines);
  const book = new LedgerBook(plant);
  for (const [index, text] of lines.entries()) book.replay(parseLedgerLine(text, index + 1));
  const progress = new LedgerProgress({ attempts, applied, settled });
  return { book, log, progress, nowMs: () => Date.now() };
}

async function route(
  request: IncomingMessage,
  response: ServerResponse,
  context: LedgerContext,
  gone: AbortSignal,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  switch (`${request.method} ${url.pathname}`) {
    case "POST /effects":
      return serveEffect(request, response, context);
    case "POST /settlements":
      return serveSettlement(request, response, context);
    case "GET /figures":
      return serveFigures(response, context);
    case "GET /entries":
      return serveEntries(response, context);
    case "GET /wait":
      return serveWait(url, response, context, gone);
    case "GET /health":
      return sendJson(response, 200, { status: "ok" });
    default:
      request.resume();
      sendError(response, 404, `There is no ${request.method} ${url.pathname}.`);
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

// A fault of ours is told to the caller; anything else is a client that left while sending.
function answerFailure(response: ServerResponse, cause: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sendError(response, 500, cause instanceof LedgerFault ? cause.message : "The ledger failed.");
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new LedgerFault(
          "cannot-listen",
          `The ledger cannot listen on 127.0.0.1:${port}. Choose another port, or 0.`,
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
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeAllConnections();
  await closed;
}
