import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** One request as the endpoint saw it. */
export interface RawRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An HTTP server that answers as a test tells it to, byte by byte. */
export interface RawEndpoint {
  /** For `baseUrl`; ends in `/v1`. */
  readonly baseUrl: string;
  readonly host: string;
  readonly requests: readonly RawRequest[];
  /** Resolves when the connection of request `index` is closed. */
  socketClosed(index: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts one on 127.0.0.1. `answer` gets the number of the request, from 0. */
export async function startRawEndpoint(
  answer: (response: ServerResponse, index: number, request: RawRequest) => void,
): Promise<RawEndpoint> {
  const requests: RawRequest[] = [];
  const closed = new WeakMap<Socket, Promise<void>>();
  const closings: (Promise<void> | undefined)[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { url = "", headers } = incoming;
      const request = { url, headers, body: Buffer.concat(chunks).toString("utf8") };
      closings.push(closed.get(incoming.socket));
      requests.push(request);
      answer(response, requests.length - 1, request);
    });
  });
  server.on("connection", (socket) => {
    closed.set(socket, new Promise((resolve) => socket.once("close", () => resolve())));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    host: `127.0.0.1:${port}`,
    requests,
    socketClosed: async (index) => await closings[index],
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Begins a streamed answer. */
export const beginStream = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
};

/** Sends one event: a change of the answer, or with `finish` the reason of its end. */
export function sendEvent(response: ServerResponse, delta: object, finish: string | null = null): void {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  response.write(`data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices })}\n\n`);
}

/** Sends the end of a whole answer. */
export function endStream(response: ServerResponse, reason: string, usage?: object): void {
  sendEvent(response, {}, reason);
  if (usage !== undefined) response.write(`data: ${JSON.stringify({ id: "c1", choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

/** A whole answer of one text. */
export function sendText(response: ServerResponse, text: string): void {
  beginStream(response);
  sendEvent(response, { role: "assistant", content: text });
  endStream(response, "stop", { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
}
