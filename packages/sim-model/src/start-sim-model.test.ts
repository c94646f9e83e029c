import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { SimModelFault } from "./sim-model-fault.ts";
import { startSimModel } from "./start-sim-model.ts";
import type { SimModel } from "./start-sim-model.ts";

const Chunk = z.object({
  object: z.literal("chat.completion.chunk"),
  choices: z.array(z.object({ delta: z.unknown(), finish_reason: z.string().nullable() })),
  usage: z.unknown().optional(),
});
const Whole = z.object({ id: z.string(), choices: z.array(z.unknown()), usage: z.unknown() });
const tool = (name: string) => ({ type: "function", function: { name, parameters: {} } });

let model: SimModel;
beforeEach(async () => {
  model = await startSimModel({
    scripts: {
      both: () => ({ text: "one two", toolCalls: [{ name: "t", arguments: { long: "x".repeat(20) } }] }),
      broken: () => {
        throw new Error("secret");
      },
    },
  });
});
afterEach(async () => {
  await model.close();
});

function chat(modelName: string, text: string, more: object = {}, init: RequestInit = {}): Promise<Response> {
  return fetch(`${model.url}/v1/chat/completions`, {
    method: "POST",
    ...init,
    body: JSON.stringify({ model: modelName, messages: [{ role: "user", content: text }], ...more }),
  });
}

async function eventsOf(response: Response): Promise<readonly z.infer<typeof Chunk>[]> {
  const events = (await response.text()).split("\n\n");
  expect(events.splice(-2)).toEqual(["data: [DONE]", ""]);
  return events.map((event) => Chunk.parse(JSON.parse(event.replace(/^data: /, ""))));
}

const release = (match: string) =>
  fetch(`${model.url}/control/release`, { method: "POST", body: JSON.stringify({ match }) }).then((r) => r.json());

describe("answers", () => {
  test("a stream holds role, text, tool calls in pieces, finish reason, then usage", async () => {
    const events = await eventsOf(
      await chat("both", "hi", { stream: true, stream_options: { include_usage: true }, tools: [tool("t")] }),
    );
    const deltas = events.map((event) => event.choices[0]?.delta);
    const id = expect.stringMatching(/^call_[0-9a-f]{18}_0$/);
    expect(deltas).toEqual([
      { role: "assistant", content: null },
      { content: "one " },
      { content: "two" },
      { tool_calls: [{ index: 0, id, type: "function", function: { name: "t", arguments: "" } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"long":"xxxxxxx' } }] },
      { tool_calls: [{ index: 0, function: { arguments: 'xxxxxxxxxxxxx"}' } }] },
      {},
      undefined,
    ]);
    expect(events.map((event) => event.choices[0]?.finish_reason ?? null).filter(Boolean)).toEqual(["tool_calls"]);
    expect(events.slice(0, -1).every((event) => event.usage === null)).toBe(true);
    expect(events.at(-1)?.usage).toEqual({ prompt_tokens: 8, completion_tokens: 18, total_tokens: 26 });
  });

  test("a stream without include_usage says nothing about usage", async () => {
    const events = await eventsOf(await chat("echo", "a  b\nc", { stream: true }));
    expect(events.every((event) => event.usage === undefined && event.choices.length === 1)).toBe(true);
    const text = events.map(
      (event) => z.object({ content: z.string().default("") }).parse(event.choices[0]?.delta).content,
    );
    expect(text.join("")).toBe("a  b\nc");
  });

  test("a whole answer has message, finish reason and usage", async () => {
    const answer = Whole.parse(await (await chat("echo", "hello")).json());
    expect(answer.choices).toEqual([
      { index: 0, message: { role: "assistant", content: "hello" }, logprobs: null, finish_reason: "stop" },
    ]);
    expect(answer.usage).toEqual({ prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 });
  });

  test("two answers to one prompt share no id", async () => {
    const ids = await Promise.all([1, 2].map(async () => Whole.parse(await (await chat("echo", "x")).json()).id));
    expect(ids[0]).not.toBe(ids[1]);
  });

  test("models and health are served", async () => {
    const models = await (await fetch(`${model.url}/v1/models`)).json();
    expect(
      z
        .object({ data: z.array(z.object({ id: z.string() })) })
        .parse(models)
        .data.map(({ id }) => id),
    ).toEqual(
      expect.arrayContaining([
        "survey-parent",
        "survey-reader",
        "delegate-two",
        "blocker",
        "echo",
        "fault-cut",
        "both",
      ]),
    );
    expect(await (await fetch(`${model.url}/health`)).json()).toEqual({ status: "ok" });
  });
});

describe("refusals have the shape OpenAI clients parse", () => {
  const OpenAiError = z.object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  });
  test.each([
    ["an unknown model", () => chat("nope", "x"), 404, "model_not_found"],
    ["a tool that is not on offer", () => chat("both", "x"), 400, "tool_not_offered"],
    ["a malformed request", () => chat("echo", "x", { messages: "?" }), 400, null],
    ["no JSON", () => fetch(`${model.url}/v1/chat/completions`, { method: "POST", body: "{" }), 400, null],
    ["an unknown path", () => fetch(`${model.url}/v1/embeddings`), 404, null],
    ["a script that throws", () => chat("broken", "x"), 500, null],
    [
      "a release without a match",
      () => fetch(`${model.url}/control/release`, { method: "POST", body: "{}" }),
      400,
      null,
    ],
    ["a bad wait", () => fetch(`${model.url}/control/wait?count=0`), 400, null],
  ])("%s", async (_name, ask, status, code) => {
    const response = await ask();
    const body = await response.json();
    expect(response.status).toBe(status);
    expect(OpenAiError.parse(body).error.code).toBe(code);
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  test("with an API key set, requests without it are refused", async () => {
    const guarded = await startSimModel({ apiKey: "k" });
    const ask = (headers: Record<string, string>) =>
      fetch(`${guarded.url}/v1/models`, { headers }).then((r) => r.status);
    try {
      expect([await ask({}), await ask({ authorization: "Bearer k" })]).toEqual([401, 200]);
    } finally {
      await guarded.close();
    }
  });
});

describe("held requests", () => {
  test("S2: a release frees those present and those to come, and no others", async () => {
    const present = chat("blocker", "child A");
    const other = chat("blocker", "child B");
    await model.waitForRequests({ state: "blocked", count: 2 });
    expect(await release("child A")).toEqual({ released: 1 });
    const answers = [await present, await chat("blocker", "child A again")];
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(texts[0]).toContain("result of child A");
    expect(texts[1]).toContain("result of child A again");
    expect(
      model
        .requests()
        .filter((request) => request.blocked)
        .map((request) => request.lastUser),
    ).toEqual(["child B"]);
    expect(model.release("child B")).toBe(1);
    expect((await other).status).toBe(200);
  });

  test("S3: a client that leaves is marked aborted and no longer held", async () => {
    const controller = new AbortController();
    const held = chat("blocker", "child A", {}, { signal: controller.signal });
    await model.waitForRequests({ state: "blocked" });
    controller.abort();
    await expect(held).rejects.toThrow("aborted");
    const { requests } = await model.waitForRequests({ state: "aborted" });
    expect(requests).toEqual([
      expect.objectContaining({ lastUser: "child A", blocked: false, aborted: true, answered: false }),
    ]);
    expect(model.release("child A")).toBe(0);
  });

  test("M2: closing the server breaks what is held", async () => {
    const held = chat("blocker", "child A");
    await model.waitForRequests({ state: "blocked" });
    await Promise.all([model.close(), expect(held).rejects.toThrow("fetch failed")]);
    await model.close();
  });
});

describe("what was seen", () => {
  test("S1: a request is listed with its headers and how it ended", async () => {
    await chat("echo", "hello", {}, { headers: { "idempotency-key": "k1", "x-holdfast-attempt": "2" } });
    await model.waitForRequests({ state: "answered" });
    const listed = await (await fetch(`${model.url}/control/requests`)).json();
    expect(listed).toEqual({
      requests: [
        {
          number: 1,
          at: expect.any(Number),
          model: "echo",
          lastUser: "hello",
          messageCount: 1,
          blocked: false,
          aborted: false,
          answered: true,
          idempotencyKey: "k1",
          holdfastAttempt: "2",
        },
      ],
    });
  });

  test("a long poll answers once enough requests match", async () => {
    const wait = fetch(`${model.url}/control/wait?match=child%20A&count=2&timeoutMs=15000`);
    await chat("echo", "child A");
    await chat("echo", "child B");
    await chat("echo", "child A 2");
    const response = await wait;
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      kind: "reached",
      requests: [{ lastUser: "child A" }, { lastUser: "child A 2" }],
    });
  });

  test("a long poll that is not met in time says what there is", async () => {
    await chat("echo", "child A");
    const response = await fetch(`${model.url}/control/wait?match=child&model=echo&count=2&timeoutMs=20`);
    expect(response.status).toBe(408);
    expect(await response.json()).toMatchObject({ kind: "timed-out", requests: [{ number: 1 }] });
  });
});

describe("faults", () => {
  test.each([
    ["fault-401", 401, null],
    ["fault-429", 429, "1"],
    ["fault-500", 500, null],
  ])("%s answers %i", async (name, status, retryAfter) => {
    const response = await chat(name, "x", { stream: true });
    expect([response.status, response.headers.get("retry-after")]).toEqual([status, retryAfter]);
  });

  test("fault-429-once lets the second attempt of the same message through", async () => {
    const statuses: number[] = [];
    for (const text of ["a", "b", "a"]) statuses.push((await chat("fault-429-once", text)).status);
    expect(statuses).toEqual([429, 429, 200]);
  });

  test.each([true, false])("fault-garbage is 200 and no JSON (stream: %s)", async (stream) => {
    const response = await chat("fault-garbage", "x", { stream });
    expect(response.status).toBe(200);
    const body = (await response.text()).replace(/^data: /, "");
    expect(() => JSON.parse(body)).toThrow(SyntaxError);
  });

  test("fault-cut breaks a stream after its first tokens, and the client is not blamed", async () => {
    const response = await chat("fault-cut", "x", { stream: true });
    const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("This ");
    await expect(reader.read()).rejects.toThrow("terminated");
    await chat("echo", "later");
    await model.waitForRequests({ state: "answered" });
    expect(model.requests()[0]).toMatchObject({ answered: false, aborted: false });
  });

  test("fault-idle sends one token and then nothing until the client leaves", async () => {
    const controller = new AbortController();
    const response = await chat("fault-idle", "x", { stream: true }, { signal: controller.signal });
    const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("This ");
    const more = reader.read();
    controller.abort();
    await expect(more).rejects.toThrow("aborted");
    expect((await model.waitForRequests({ state: "aborted" })).kind).toBe("reached");
  });

  test("fault-never sends not even a header", async () => {
    await expect(chat("fault-never", "x", {}, { signal: AbortSignal.timeout(100) })).rejects.toThrow("timeout");
    expect((await model.waitForRequests({ state: "aborted" })).kind).toBe("reached");
  });
});

test("a taken port is a fault that says what to do", async () => {
  const second = startSimModel({ port: model.port });
  await expect(second).rejects.toBeInstanceOf(SimModelFault);
  await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${model.port}. Choose another port, or 0.`);
});
