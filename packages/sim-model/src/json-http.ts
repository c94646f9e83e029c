import type { IncomingMessage, ServerResponse } from "node:http";

const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** The body of a request; `invalid` says why it is no JSON and which status to answer with. */
export type JsonBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "invalid"; readonly status: 400 | 413; readonly message: string };

/** Reads a whole JSON body of at most 16 MiB. Rejects only when the client goes away. */
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
  } catch {
    // The parser's message quotes the body, which may hold a prompt.
    return { kind: "invalid", status: 400, message: "The body is not valid JSON." };
  }
}

/** Answers with a JSON body. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(JSON.stringify(body));
}

/** Answers with an error in the shape OpenAI clients parse. */
export function sendError(
  response: ServerResponse,
  status: number,
  error: {
    readonly message: string;
    readonly type: string;
    readonly param?: string;
    readonly code?: string;
  },
  headers?: Readonly<Record<string, string>>,
): void {
  const { message, type, param = null, code = null } = error;
  sendJson(response, status, { error: { message, type, param, code } }, headers);
}
