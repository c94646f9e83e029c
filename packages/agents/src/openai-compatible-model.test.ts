import { tracingChannel } from "node:diagnostics_channel";
import { type ToolDefinition } from "@holdfast/protocol";
import { registerTelemetry } from "ai";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  endpointPool,
  BODY,
  contextOf,
  faultOf,
  INSTRUCTIONS,
  KEY,
  modelAt,
  PROMPT,
  requestOf,
  sendStatus,
} from "./testing/model-call.ts";
import { beginStream, endStream, sendEvent, sendText } from "./testing/raw-endpoint.ts";

const { start: endpoint, closeAll } = endpointPool();
afterEach(closeAll);

const lookup: ToolDefinition = {
  name: "lookup",
  description: "Looks something up.",
  inputSchema: { type: "object", properties: { id: { type: "number" } }, required: ["id"] },
  kind: "local",
  crashPolicy: "idempotent",
};

const callStart = (index: number, id: string, text = "") => ({
  tool_calls: [{ index, id, type: "function", function: { name: "lookup", arguments: text } }],
});
const argumentPiece = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] });

describe("an answer", () => {
  test("arrives token by token and whole, with usage and the reason of its end", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { role: "assistant", content: "" });
      for (const content of ["One ", "two ", "three."]) sendEvent(response, { content });
      endStream(response, "stop", { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 });
    });
    const tokens: string[] = [];
    const reply = await modelAt(at).generate(requestOf(), contextOf({ onToken: (text) => tokens.push(text) }));
    expect(reply).toEqual({
      text: "One two three.",
      toolCalls: [],
      finishReason: "stop",
      usage: { inputTokens: 11, outputTokens: 4 },
    });
    expect(tokens).toEqual(["One ", "two ", "three."]);
  });

  test("is asked for with the key, the idempotency key, the attempt, the tools and nothing the request does not say", async () => {
    const at = await endpoint((response) => sendText(response, "ok"));
    await modelAt(at).generate(requestOf({ tools: [lookup], maxOutputTokens: 77 }), contextOf());
    const [request] = at.requests;
    expect(request?.url).toBe("/v1/chat/completions");
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      "idempotency-key": "d-3.conversation.c1^g:1/model-1",
      "x-holdfast-attempt": "2",
    });
    expect(JSON.parse(request?.body ?? "")).toEqual({
      model: "m1",
      max_tokens: 77,
      messages: [
        { role: "system", content: INSTRUCTIONS },
        { role: "user", content: PROMPT },
      ],
      tools: [
        {
          type: "function",
          function: { name: "lookup", description: "Looks something up.", parameters: lookup.inputSchema },
        },
      ],
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test("may hold parallel tool calls whose arguments arrive in interleaved pieces; none is run", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { role: "assistant", content: "Looking." });
      sendEvent(response, callStart(0, "a"));
      sendEvent(response, callStart(1, "b"));
      sendEvent(response, argumentPiece(0, '{"id"'));
      sendEvent(response, argumentPiece(1, '{"id":2'));
      sendEvent(response, argumentPiece(0, ":1}"));
      sendEvent(response, argumentPiece(1, "}"));
      endStream(response, "stop");
    });
    const reply = await modelAt(at).generate(requestOf({ tools: [lookup] }), contextOf());
    expect(reply).toEqual({
      text: "Looking.",
      toolCalls: [
        { callId: "a", name: "lookup", input: { id: 1 } },
        { callId: "b", name: "lookup", input: { id: 2 } },
      ],
      finishReason: "toolCalls",
      usage: { inputTokens: 0, outputTokens: 0 },
    });
  });

  test("keeps arguments that are no JSON as the string they are, and empty ones as an empty object", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      for (const [index, text] of ['{"id": oops', "", '"text"'].entries()) {
        sendEvent(response, callStart(index, `c${index}`, text));
      }
      endStream(response, "tool_calls");
    });
    const { toolCalls } = await modelAt(at).generate(requestOf({ tools: [lookup] }), contextOf());
    expect(toolCalls.map((call) => call.input)).toEqual(['{"id": oops', {}, "text"]);
  });

  test("may call a tool it was not offered; that is for the caller to answer", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, {
        tool_calls: [{ index: 0, id: "x", type: "function", function: { name: "rm rf", arguments: '{"a":1}' } }],
      });
      endStream(response, "tool_calls");
    });
    const { toolCalls } = await modelAt(at).generate(requestOf(), contextOf());
    expect(toolCalls).toEqual([{ callId: "x", name: "rm rf", input: { a: 1 } }]);
  });

  test.each([
    ["length", "length"],
    ["content_filter", "contentFilter"],
    ["something_new", "other"],
  ])("that ends with %s says %s", async (reason, finishReason) => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "text" });
      endStream(response, reason);
    });
    expect(await modelAt(at).generate(requestOf(), contextOf())).toMatchObject({ finishReason });
  });

  test("longer than the limit is refused and its connection closed", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "x".repeat(2000) });
    });
    const fault = await faultOf(
      modelAt(at, { maxReplyCharacters: 1000, maxRetries: 3 }).generate(requestOf(), contextOf()),
    );
    expect(fault).toMatchObject({ code: "HF-5004", facts: { tries: 1, retryable: false } });
    await at.socketClosed(0);
  });

  test("of one endless line is refused before it is kept whole", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      const pump = (): void => {
        while (!response.destroyed && response.write(`data: ${"y".repeat(64 * 1024)}`));
        response.once("drain", pump);
      };
      pump();
    });
    const fault = await faultOf(modelAt(at, { maxReplyCharacters: 1000 }).generate(requestOf(), contextOf()));
    expect(fault.code).toBe("HF-5004");
    expect(fault.message).toContain("400000 bytes");
    await at.socketClosed(0);
  });
});

test("M2: of many calls that end in every way nothing is printed and nothing is left unhandled", async () => {
  const printed: unknown[] = [];
  const spies = (["error", "warn", "log"] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation((...line) => void printed.push(line)),
  );
  const onWarning = (warning: unknown): void => void printed.push(warning);
  process.on("warning", onWarning);
  const at = await endpoint((response, index) => {
    if (index % 4 === 0) return sendStatus(response, 500, {});
    beginStream(response);
    sendEvent(response, { content: "x" });
    if (index % 4 === 1) setTimeout(() => response.destroy(), 5);
    else if (index % 4 === 2) response.end(`data: ${BODY}\n\n`);
    else endStream(response, "stop");
  });
  try {
    const { signal } = new AbortController();
    for (let index = 0; index < 24; index += 1) {
      const call = modelAt(at).generate(requestOf(), contextOf({ signal }));
      if (index % 4 === 3) await call;
      else await faultOf(call);
    }
    // Rejections that nobody handled are raised after a turn; the runner fails on any.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", onWarning);
    for (const spy of spies) spy.mockRestore();
  }
  expect(printed).toEqual([]);
});

test("M4: observers of the SDK see nothing of a call", async () => {
  const seen: string[] = [];
  const note = (what: string) => (): void => void seen.push(what);
  registerTelemetry({ onStart: note("start"), onLanguageModelCallStart: note("call"), onEnd: note("end") });
  const channel = tracingChannel("ai:telemetry");
  const traced = note("traced");
  const subscriber = { start: traced, end: traced, asyncStart: traced, asyncEnd: traced, error: traced };
  channel.subscribe(subscriber);
  try {
    const at = await endpoint((response) => sendText(response, "ok"));
    await modelAt(at).generate(requestOf(), contextOf());
  } finally {
    channel.unsubscribe(subscriber);
    globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
  }
  expect(seen).toEqual([]);
});
