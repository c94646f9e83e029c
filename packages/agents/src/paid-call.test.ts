import { RuntimeFault, type Amount, type ModelReply } from "@holdfast/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { createAgentJobs } from "./agent-jobs.ts";
import { amountOf, boundsOf, PAID_OUTPUT_TOKENS } from "./call-cost.ts";
import { defineAgent } from "./define-agent.ts";
import type { HeldMoney, MoneyRequest, ReserveMoney } from "./paid-call.ts";
import { contextOf, endpointPool, modelAt, sendStatus } from "./testing/model-call.ts";
import { beginStream, sendEvent, sendText } from "./testing/raw-endpoint.ts";
import { createToolbox } from "./toolbox.ts";

const { start: endpoint, closeAll } = endpointPool();
afterEach(closeAll);

const prices = { m1: { inputMicroUsd: 3_000_000, outputMicroUsd: 15_000_000 } };
const agent = defineAgent({ name: "a", model: "m1", prices, limits: { maxOutputTokens: 100 } });
const payer = { wallet: "w1" };

/** A purse that writes down what became of each try. */
function purse(more: Partial<HeldMoney> = {}) {
  const requests: MoneyRequest[] = [];
  const ends: unknown[][] = [];
  const reserve: ReserveMoney = async (request) => {
    requests.push(request);
    return {
      settle: async (...settled) => {
        ends.push(["settled", ...settled]);
        return false;
      },
      release: async (reason) => void ends.push(["released", reason]),
      leaveUnresolved: async (reason) => void ends.push(["unresolved", reason]),
      ...more,
    };
  };
  return { requests, ends, reserve };
}

interface CallOptions {
  readonly input?: object;
  readonly signal?: AbortSignal;
  readonly maxRetries?: number;
}

async function call(
  at: Awaited<ReturnType<typeof endpoint>>,
  reserve: ReserveMoney,
  { input = { agent, payer }, signal = new AbortController().signal, maxRetries = 1 }: CallOptions = {},
): Promise<ModelReply> {
  const jobs = createAgentJobs({
    model: modelAt(at, { maxRetries, retryBaseMs: 1 }),
    toolbox: createToolbox([]),
    readTranscript: async () => [{ role: "user", messageId: "u", text: "hello" }],
    reserve,
  });
  return jobs.generate(input, {
    key: "j1",
    actorKey: "d-0.conversation.c1",
    genesis: "g:1",
    rev: 1,
    attempt: 1,
    signal,
  });
}

describe("what a call costs", () => {
  test("is rounded up to a millionth, and kept as it was measured", () => {
    expect(amountOf("m1", prices, { inputTokens: 1, outputTokens: 0 })).toEqual({
      amount: { microUsd: 3, tokens: 1 },
      nanoUsd: 3000,
    });
    const cheap = { m1: { inputMicroUsd: 1, outputMicroUsd: 0 } };
    expect(amountOf("m1", cheap, { inputTokens: 1, outputTokens: 0 })).toEqual({
      amount: { microUsd: 1, tokens: 1 },
      nanoUsd: 0.001,
    });
  });

  test("without a price is not 0", () => {
    for (const known of [undefined, {}, { toString: prices.m1 }])
      expect(amountOf("m1", known, { inputTokens: 5, outputTokens: 6 })).toEqual({ amount: { tokens: 11 } });
    expect(amountOf("toString", {}, { inputTokens: 1, outputTokens: 1 }).amount).not.toHaveProperty("microUsd");
  });

  test("is bounded before it is made: more than an endpoint can count, in any script", () => {
    const text = "日本語".repeat(100);
    const request = {
      model: "m1",
      instructions: "Be brief.",
      messages: [{ role: "user", messageId: "u", text }] as const,
      tools: [],
    };
    const { estimate, maximum } = boundsOf(request, prices);
    expect(maximum.tokens).toBeGreaterThan(900 + PAID_OUTPUT_TOKENS);
    expect(estimate.tokens).toBeLessThan(maximum.tokens);
    expect(boundsOf({ ...request, maxOutputTokens: 10 }, prices).maximum.tokens).toBeLessThan(2000);
  });
});

describe("a try", () => {
  test("P1: does not begin before its money is held, and settles to what was measured", async () => {
    const order: string[] = [];
    const at = await endpoint((response) => {
      order.push("asked");
      beginStream(response);
      sendEvent(response, { content: "hi" });
      response.end(
        `data: ${JSON.stringify({
          choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
          usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
        })}\n\ndata: [DONE]\n\n`,
      );
    });
    const { requests, ends, reserve } = purse();
    const reply = await call(at, async (request) => {
      order.push("reserved");
      return reserve(request);
    });
    expect(order).toEqual(["reserved", "asked"]);
    expect(reply).toMatchObject({ text: "hi" });
    expect(reply).not.toHaveProperty("isFenced");
    expect(requests[0]).toMatchObject({ payer, job: "j1" });
    expect(ends).toEqual([["settled", { microUsd: 51, tokens: 9 } satisfies Amount, 51_000]]);
  });

  test("P1: without money is not made, and its refusal is the outcome", async () => {
    const at = await endpoint((response) => sendText(response, "no"));
    const spent = new RuntimeFault("HF-5301", "spent", { facts: { scope: "root", wallet: "w1" } });
    await expect(call(at, () => Promise.reject(spent))).rejects.toBe(spent);
    expect(at.requests).toHaveLength(0);
  });

  test("P2: that the endpoint refused cost nothing: a storm of them leaves the budget as it was", async () => {
    const at = await endpoint((response, index) => sendStatus(response, [500, 429, 404, 403][index % 4] ?? 500, {}));
    const { requests, ends, reserve } = purse();
    for (let n = 0; n < 40; n += 1) await call(at, reserve, { maxRetries: 0 }).catch(() => undefined);
    expect(requests).toHaveLength(40);
    expect(ends.map(([how]) => how)).toEqual(Array(40).fill("released"));
  });

  test("P2: each has money of its own; one that was cut off is unresolved", async () => {
    const at = await endpoint((response, index) => {
      if (index > 0) return sendText(response, "whole");
      beginStream(response);
      sendEvent(response, { content: "half" });
      setTimeout(() => response.destroy(), 20);
    });
    const { requests, ends, reserve } = purse();
    await call(at, reserve);
    expect(requests).toHaveLength(2);
    expect(ends.map(([how]) => how)).toEqual(["unresolved", expect.stringMatching(/settled|unresolved/)]);
  });

  test("P2: whose proxy gave up, and one that is stopped, are unresolved: it may have been carried out", async () => {
    const late = await endpoint((response) => sendStatus(response, 504, {}));
    const { ends, reserve } = purse();
    await call(late, reserve, { maxRetries: 0 }).catch(() => undefined);
    expect(ends).toEqual([["unresolved", "HF-5003"]]);
    const stop = new AbortController();
    const endless = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "half" });
      stop.abort();
    });
    await call(endless, reserve, { signal: stop.signal }).catch(() => undefined);
    expect(ends.at(-1)).toEqual(["unresolved", "abandoned"]);
  });

  test("P2: that reached nobody cost nothing", async () => {
    const at = await endpoint((response) => sendText(response, "gone"));
    await closeAll();
    const { ends, reserve } = purse();
    await call(at, reserve, { maxRetries: 0 }).catch(() => undefined);
    expect(ends).toEqual([["released", "HF-5003"]]);
  });

  test("P3: that was paid for gives its answer, also when nobody takes note of its price", async () => {
    const at = await endpoint((response) => sendText(response, "paid"));
    const { reserve } = purse({
      settle: () => Promise.reject(new Error("no answer")),
      leaveUnresolved: () => Promise.reject(new Error("no answer")),
    });
    expect(await call(at, reserve)).toMatchObject({ text: "paid" });
  });

  test("nobody pays for is made as it always was", async () => {
    const at = await endpoint((response) => sendText(response, "free"));
    const { requests, reserve } = purse();
    await call(at, reserve, { input: { agent } });
    expect(requests).toEqual([]);
    expect(contextOf()).not.toHaveProperty("tries");
  });
});
