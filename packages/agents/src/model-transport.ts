import { z } from "zod";
import { systemCodeOf } from "./known-reason.ts";
import {
  cutProblem,
  isRefusedUncharged,
  refusedProblem,
  tooLongProblem,
  unreachableProblem,
  unreadableProblem,
  type ModelProblem,
} from "./model-problem.ts";
import { parseRetryAfterMs } from "./retry-delay.ts";

const MAX_ERROR_BODY_BYTES = 16 * 1024;

/** A server that does not stream at all: an error page, or an endpoint that ignores `stream`. */
const NOT_A_STREAM = /^(text\/html|application\/json)\b/i;

const ErrorBody = z.object({ error: z.object({ type: z.unknown().optional(), code: z.unknown().optional() }) });

/**
 * The connection of one try, seen from below the SDK: what went wrong there is noted in our own words, so that nobody has
 * to read the errors of the SDK, which hold the whole request.
 *
 * Owns: the first problem. Does not own: time limits (the signal of the call).
 *   T1 the first problem stays
 *   T2 an aborted signal is no problem of the connection
 */
export class ModelTransport {
  readonly #maxBytes: number;
  readonly #onHeaders: () => void;
  #problem: ModelProblem | undefined;

  /** @param options.onHeaders  called when a good answer begins */
  constructor(options: { readonly maxBytes: number; readonly onHeaders: () => void }) {
    this.#maxBytes = options.maxBytes;
    this.#onHeaders = options.onHeaders;
  }

  get problem(): ModelProblem | undefined {
    return this.#problem;
  }

  /** Rejects without telling why: the why is `problem`. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const signal = init?.signal ?? new AbortController().signal;
    const response = await this.#send(input, init, signal);
    if (!response.ok) throw this.#fail(await readRefusal(response));
    const { body } = response;
    if (body === null) throw this.#fail(unreadableProblem("answered without a body"));
    if (NOT_A_STREAM.test(response.headers.get("content-type") ?? "")) {
      await body.cancel();
      throw this.#fail(unreadableProblem("answered a document instead of an event stream"));
    }
    this.#onHeaders();
    const watched = ReadableStream.from(this.#watch(body, signal));
    return new Response(watched, { status: response.status, headers: response.headers });
  };

  async #send(input: Parameters<typeof fetch>[0], init: RequestInit | undefined, signal: AbortSignal) {
    try {
      // Not followed: the key and the conversation go where they were told to go and nowhere else.
      return await globalThis.fetch(input, { ...init, redirect: "manual" });
    } catch (error) {
      throw signal.aborted ? stopped() : this.#fail(unreachableProblem(systemCodeOf(error))); // T2
    }
  }

  async *#watch(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    try {
      for await (const chunk of body) {
        bytes += chunk.length;
        // One endless line would otherwise be kept whole until it ends.
        if (bytes > this.#maxBytes) throw this.#fail(tooLongProblem(`sent more than ${this.#maxBytes} bytes`));
        yield chunk;
      }
    } catch {
      throw signal.aborted ? stopped() : this.#fail(cutProblem); // T2
    }
  }

  #fail(problem: ModelProblem): Error {
    this.#problem ??= problem; // T1
    return stopped();
  }
}

const stopped = (): Error => new Error("The call ended early.");

async function readRefusal({ status, headers, body }: Response): Promise<ModelProblem> {
  const parsed = ErrorBody.safeParse(await readErrorBody(body));
  const problem = refusedProblem({
    status,
    errorType: parsed.data?.error.type,
    errorCode: parsed.data?.error.code,
    retryAfterMs: parseRetryAfterMs(headers, Date.now()),
  });
  return { ...problem, isUncharged: isRefusedUncharged(status) };
}

async function readErrorBody(body: AsyncIterable<Uint8Array> | null): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_ERROR_BODY_BYTES) return undefined;
    }
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined; // The status says enough; the body would only have named a reason.
  }
}
