import type { IncomingMessage, ServerResponse } from "node:http";

const MAX_BODY_BYTES = 1024 * 1024;

/** The body of a request; `invalid` says why it is no JSON and which status to answer with. */
export type JsonBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "invalid"; readonly status: 400 | 413; readonly message: string };

/** Reads a whole JSON body of at most 1 MiB. Rejects only when the client goes away. */
export async function readJsonBody(request: IncomingMessage): Promise<JsonBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    // Keep reading: a client that is still sending would not see an early answer.
    if (size <= MAX_BODY_BYTES) chunks.push(bytes);
  }
  if (size > MAX_BODY_BYTES) {
    return { kind: "invalid", status: 413, message: `The body exceeds ${MAX_BODY_BYTES} bytes.` };
  }
  try {
    return { kind: "json", value: JSON.parse(Buffer.concat(chunks).toString("utf8")) };
  } catch (cause) {
    return { kind: "invalid", status: 400, message: `The body is not valid JSON: ${String(cause)}` };
  }
}

/** Answers with a JSON body. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(body));
}

/** Answers `{error: {message}}`. */
export function sendError(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, { error: { message } });
}
