import { afterEach, describe, expect, test } from "vitest";
import type { ModelRetry } from "./model-port.ts";
import { createOpenAiCompatibleModel } from "./openai-compatible-model.ts";
import {
  endpointPool,
  BODY,
  contextOf,
  everythingOf,
  faultOf,
  KEY,
  modelAt,
  PROMPT,
  requestOf,
  sendStatus,
} from "./testing/model-call.ts";
import { beginStream, sendEvent, sendText } from "./testing/raw-endpoint.ts";

const { start: endpoint, closeAll } = endpointPool();
afterEach(closeAll);

describe("a fault", () => {
  test("names endpoint and model, what happened and what to do, and nothing else", async () => {
    const at = await endpoint((response) => sendStatus(response, 401, { code: "invalid_api_key" }));
    const fault = await faultOf(modelAt(at, { maxRetries: 3 }).generate(requestOf(), contextOf()));
    expect(fault.toJSON()).toEqual({
      name: "ModelFault",
      code: "HF-5001",
      message: `Model m1 at ${at.host}: answered status 401 (invalid_api_key). Check the key and what it may use.`,
      facts: { endpoint: at.host, model: "m1", tries: 1, retryable: false, status: 401, reason: "invalid_api_key" },
    });
    expect(fault.cause).toBeUndefined();
    expect(at.requests).toHaveLength(1);
  });

  test("does not repeat a code of the endpoint that is not a known word", async () => {
    const at = await endpoint((response) => sendStatus(response, 400, { type: KEY, code: PROMPT }));
    const fault = await faultOf(modelAt(at, { maxRetries: 3 }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5003", facts: { status: 400, retryable: false } });
    expect(fault.facts).not.toHaveProperty("reason");
    expect(at.requests).toHaveLength(1);
  });

  test.each([
    [404, { code: "model_not_found" }, "HF-5003", "base URL"],
    [400, { code: "context_length_exceeded" }, "HF-5003", "longer than the model can read"],
    [403, {}, "HF-5001", "key"],
    [429, { code: "insufficient_quota" }, "HF-5002", "quota"],
    [422, {}, "HF-5003", "does not take this request"],
  ])("of status %i %o is %s and not repeated", async (status, error, code, hint) => {
    const at = await endpoint((response) => sendStatus(response, status, error));
    const fault = await faultOf(modelAt(at, { maxRetries: 3 }).generate(requestOf(), contextOf()));
    expect(fault.code).toBe(code);
    expect(fault.message).toContain(hint);
    expect(at.requests).toHaveLength(1);
  });

  test("of a redirect is not followed: the key goes nowhere else", async () => {
    const other = await endpoint((response) => sendText(response, "stolen"));
    const at = await endpoint((response) => {
      response.writeHead(307, { location: `${other.baseUrl}/chat/completions` });
      response.end();
    });
    const fault = await faultOf(modelAt(at).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5003", facts: { status: 307, retryable: false } });
    expect(other.requests).toHaveLength(0);
  });

  test("of a wrong option does not repeat the option", () => {
    for (const options of [
      { baseUrl: "http://127.0.0.1:1/v1", apiKey: `${KEY}\nx-evil: 1` },
      { baseUrl: `http://user:${KEY}@127.0.0.1:1/v1` },
      { baseUrl: `http://127.0.0.1:1/v1?key=${KEY}` },
      { baseUrl: `ftp://${KEY}` },
    ]) {
      let error: unknown;
      try {
        createOpenAiCompatibleModel(options);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({ code: "HF-1001" });
      expect(everythingOf(error)).not.toContain(KEY);
    }
  });

  test("in the middle of a stream is judged by its status", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "Begin" });
      response.end(`data: ${JSON.stringify({ error: { message: BODY, type: "overloaded_error", code: 503 } })}\n\n`);
    });
    const fault = await faultOf(modelAt(at).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({
      code: "HF-5003",
      facts: { status: 503, reason: "overloaded_error", retryable: true },
    });
  });
});

describe("a passing fault", () => {
  test("of status 429 is waited out as long as the endpoint asks, up to the cap", async () => {
    const at = await endpoint((response, index) => {
      if (index === 0) sendStatus(response, 429, { type: "rate_limit_error" }, { "retry-after-ms": "40" });
      else if (index === 1) sendStatus(response, 429, {}, { "retry-after": "3600" });
      else sendText(response, "at last");
    });
    const retries: ModelRetry[] = [];
    const model = modelAt(at, { maxRetries: 2, maxRetryAfterMs: 60 });
    const reply = await model.generate(requestOf(), contextOf({ onRetry: (retry) => retries.push(retry) }));
    expect(reply.text).toBe("at last");
    expect(retries.map(({ delayMs, tries, fault }) => [fault.code, tries, delayMs])).toEqual([
      ["HF-5002", 1, 40],
      ["HF-5002", 2, 60],
    ]);
    expect(new Set(at.requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  test("that does not pass ends after the last try and says how many there were", async () => {
    const at = await endpoint((response) => sendStatus(response, 429, {}));
    const fault = await faultOf(modelAt(at, { maxRetries: 2 }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5002", next: "retry", facts: { tries: 3, retryable: true } });
    expect(fault.message).toContain("after 3 tries");
    expect(at.requests).toHaveLength(3);
  });

  test("of our own pacing doubles between the tries", async () => {
    const at = await endpoint((response) => sendStatus(response, 500, {}));
    const delays: number[] = [];
    const model = modelAt(at, { maxRetries: 3, retryBaseMs: 4, random: () => 0 });
    await faultOf(model.generate(requestOf(), contextOf({ onRetry: ({ delayMs }) => delays.push(delayMs) })));
    expect(delays).toEqual([2, 4, 8]);
  });

  test("of a cut stream is repeated, and its tokens start over", async () => {
    const at = await endpoint((response, index) => {
      if (index > 0) return sendText(response, "whole");
      beginStream(response);
      sendEvent(response, { content: "half" });
      setTimeout(() => response.destroy(), 30);
    });
    const seen: string[] = [];
    const reply = await modelAt(at, { maxRetries: 1 }).generate(
      requestOf(),
      contextOf({ onToken: (text) => seen.push(text), onRetry: ({ fault }) => seen.push(fault.code) }),
    );
    expect(reply.text).toBe("whole");
    expect(seen).toEqual(["half", "HF-5006", "whole"]);
  });

  test("of a stream that ends politely without a reason counts as cut when it had begun", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "half" });
      response.end();
    });
    expect(await faultOf(modelAt(at).generate(requestOf(), contextOf()))).toMatchObject({ code: "HF-5006" });
  });

  test.each([
    ["an event that is no JSON", "text/event-stream", `data: {"choices": ${BODY}\n\n`],
    ["an event of another shape", "text/event-stream", `data: {"planted": "${BODY}"}\n\n`],
    ["an empty stream", "text/event-stream", ""],
    ["a web page", "text/html", `<html>${BODY}</html>`],
    ["a document instead of a stream", "application/json", `{"choices":[{"message":{"content":"${BODY}"}}]}`],
  ])("of %s is repeated once and no more", async (_what, type, body) => {
    const at = await endpoint((response) => {
      response.writeHead(200, { "content-type": type });
      response.end(body);
    });
    const fault = await faultOf(modelAt(at, { maxRetries: 5 }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5004", facts: { tries: 2 } });
    expect(at.requests).toHaveLength(2);
  });

  test("of an endpoint that is not there is repeated and names the system's code", async () => {
    const at = await endpoint(() => undefined);
    await at.close();
    const fault = await faultOf(modelAt(at, { maxRetries: 1 }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5003", facts: { tries: 2, reason: "ECONNREFUSED" } });
  });
});
