import type { ModelPrice } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { ConversationContext } from "./conversation-context.ts";
import * as turn from "./conversation-turn.ts";
import { noEffectOf } from "./no-effect.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, readCall, reply, taskCall, testAgent } from "./testing/test-agent.ts";

const limited = (maxIterations: number) => testAgent({ limits: { maxIterations, maxTurnMs: 60_000 } });

const repeat = (rig: ReturnType<typeof startConversation>, from: number, times: number, result: string) => {
  for (let n = from; n < from + times; n += 1) {
    rig.reply(reply("", [readCall("a")]));
    rig.settle(`call-${n}-a`, result);
  }
};

describe("maxIterations", () => {
  test("an answer on the last allowed model call is an answer", () => {
    const rig = startConversation({ agent: limited(2), prompt: "go" });
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-1-a", "A");
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("without an answer it ends in error, with its cause, after the results of the last step", () => {
    const rig = startConversation({ agent: limited(2), prompt: "go" });
    for (const n of [1, 2]) {
      rig.reply(reply(`step ${n}`, [readCall(`a${n}`)]));
      rig.settle(`call-${n}-a${n}`, "A");
    }
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.snapshot().context.lastFailure).toMatchObject({ cause: "limit", code: "HF-5202" });
    expect(rig.transcript().at(-1)?.role).toBe("tool");
    expect(rig.emitted.at(-1)).toEqual({ type: "conversationError", agent: "chief", cause: "limit" });
  });

  test("the next message continues from there with a full allowance", () => {
    const rig = startConversation({ agent: limited(1), prompt: "go" });
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-1-a", "A");
    rig.say("m2");
    expect(rig.snapshot().context.iteration).toBe(1);
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("resume gives a full allowance, too", () => {
    const rig = startConversation({ agent: limited(2), prompt: "go" });
    for (const n of [1, 2, 3]) {
      rig.reply(reply("", [readCall(`a${n}`)]));
      rig.settle(`call-${n}-a${n}`, "A");
      if (n === 2) rig.send({ type: "resume" });
    }
    expect(rig.state()).toEqual({ status: "running" });
  });

  test("a message accepted during the last step is answered", () => {
    const rig = startConversation({ agent: limited(1), prompt: "go" });
    rig.reply(reply("", [readCall("a")]));
    rig.say("m2");
    rig.settle("call-1-a", "A");
    expect(rig.state()).toEqual({ status: "running" });
  });
});

describe("maxTurnMs", () => {
  test.each([
    ["a model call", undefined],
    ["tool calls", reply("", [readCall("a"), taskCall("b"), askCall("c")])],
  ])("ends a turn during %s", (_, step) => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    if (step !== undefined) rig.reply(step);
    rig.clock.increment(59_999);
    expect(rig.state().status).toBe("running");
    rig.clock.increment(1);
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.snapshot().context.lastFailure).toMatchObject({ cause: "timeout", code: "HF-5204" });
    rig.say("m2");
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
  });

  test("the clock runs through all steps of a turn", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.clock.increment(40_000);
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-1-a", "A");
    rig.clock.increment(20_000);
    expect(rig.state()).toEqual({ status: "error" });
  });

  test("C5: it does not run while only people are waited for", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.reply(reply("", [askCall("c"), taskCall("b")]));
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "waiting" });
    rig.clock.increment(10 * 24 * 3_600_000);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
    rig.settle("call-1-c", { waitId: "w", status: "answered", answer: "yes", by: "ada" });
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
    rig.clock.increment(60_000);
    expect(rig.state()).toEqual({ status: "error" });
  });

  test("C5: it does not run while only tasks work; it begins anew with the next step, and is announced once", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.reply(reply("", [taskCall("b"), readCall("a")]));
    rig.settle("call-1-a", "A");
    rig.clock.increment(10 * 24 * 3_600_000);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
    expect(rig.modelStarts).toHaveLength(2);
    expect(rig.emitted.filter(({ type }) => type === "conversationRunning")).toHaveLength(1);
    rig.clock.increment(59_999);
    expect(rig.state()).toEqual({ status: "running" });
    rig.clock.increment(1);
    expect(rig.state()).toEqual({ status: "error" });
  });

  test("C5: it runs beside tasks while a tool of its own does", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.reply(reply("", [taskCall("b"), readCall("a")]));
    rig.clock.increment(60_000);
    expect(rig.state()).toEqual({ status: "error" });
  });

  test("while only tasks work, it takes messages, can be interrupted, and asks when all of them wait for a person", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.reply(reply("", [taskCall("b")]));
    rig.say("m2");
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "waiting" });
    expect(rig.snapshot().value).toEqual({ turn: "asking" });
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "running" });
    expect(rig.snapshot().value).toEqual({ turn: "delegating" });
    expect(rig.emitted.map(({ type }) => type).slice(-2)).toEqual(["conversationWaiting", "conversationRunning"]);
    rig.send({ type: "interrupt" });
    expect(rig.state()).toEqual({ status: "paused" });
    expect(rig.sent).toEqual(["call-1-b cancel"]);
    rig.send({ type: "resume" });
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("C5: it does not run during a pause, and a new turn has its own", () => {
    const rig = startConversation({ agent: limited(9), prompt: "go" });
    rig.clock.increment(50_000);
    rig.send({ type: "interrupt" });
    rig.clock.increment(50_000);
    rig.send({ type: "resume" });
    rig.clock.increment(50_000);
    expect(rig.state()).toEqual({ status: "running" });
  });
});

describe("stuck", () => {
  const lastShown = (rig: ConversationRig) => rig.modelStarts.at(-1)?.transcript.at(-1);

  test("four equal steps with equal results: the agent is told so once; with one more it is stuck", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 3, "same");
    expect(rig.children()).toEqual(["model-4-1"]);
    repeat(rig, 4, 1, "same");
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.children()).toEqual(["model-5-1-repeats"]);
    expect(rig.jobInput("model-5-1-repeats")).toMatchObject({ nudge: expect.stringContaining("same results") });
    repeat(rig, 5, 1, "same");
    expect(rig.state()).toEqual({ status: "stuck" });
    expect(rig.snapshot().context.lastFailure).toMatchObject({ cause: "stuck", code: "HF-5202" });
    expect(rig.transcript().filter(({ role }) => role === "user")).toHaveLength(2);
  });

  test("what the agent was told stays in the history, before its reply, which providers accept", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 4, "same");
    rig.reply(reply("", [readCall("b")]));
    rig.settle("call-5-b", "B");
    const shown = rig.modelStarts.at(-1)?.transcript ?? [];
    expect(problemOfHistory(shown)).toBeUndefined();
    expect(shown.map((message) => (message.role === "user" ? message.messageId : message.role)).slice(-3)).toEqual([
      "nudge-5",
      "assistant",
      "tool",
    ]);
    expect(lastShown(rig)).toMatchObject({ role: "tool" });
  });

  test("an agent that heeds it goes on; going round in circles a second time is stuck at once", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 4, "same");
    repeat(rig, 5, 1, "other");
    expect(rig.children()).toEqual(["model-6-1"]);
    repeat(rig, 6, 3, "other");
    expect(rig.state()).toEqual({ status: "stuck" });
  });

  test.each([
    ["errors", 3, (n: number) => ({ ok: false, content: `error ${n}` }), () => readCall("a")],
    ["alternating", 6, (n: number) => `result ${n % 2}`, (n: number) => readCall("a", `path ${n % 2}`)],
  ] as const)("%s: told after %i steps", (pattern, steps, result, call) => {
    const rig = startConversation({ prompt: "go" });
    for (let n = 1; n <= steps; n += 1) {
      expect(rig.children()).toEqual([`model-${n}-1`]);
      rig.reply(reply("", [call(n)]));
      rig.settle(`call-${n}-a`, result(n));
    }
    expect(rig.children()).toEqual([`model-${steps + 1}-1-${pattern}`]);
  });

  test("monologue: three replies of whose calls none could be carried out", () => {
    const rig = startConversation({ prompt: "go" });
    for (const n of [1, 2, 3]) rig.reply(reply("let me see", [{ callId: "x", name: `tool_${n}`, input: {} }]));
    expect(rig.children()).toEqual(["model-4-1-monologue"]);
    rig.reply(reply("let me see", [{ callId: "x", name: "tool_4", input: {} }]));
    expect(rig.state()).toEqual({ status: "stuck" });
  });

  test("another result is progress", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 3, "same");
    repeat(rig, 4, 3, "other");
    expect(rig.children()).toEqual(["model-7-1"]);
  });

  test("thresholds are the agent's", () => {
    const limits = { maxIterations: 50, maxTurnMs: 60_000, stuck: { repeats: 2, errors: 0 } };
    const rig = startConversation({ agent: testAgent({ limits }), prompt: "go" });
    repeat(rig, 1, 3, "same");
    expect(rig.state()).toEqual({ status: "stuck" });
  });

  test.each([
    ["a message", { type: "userMessage", messageId: "m2", text: "go on" }],
    ["resume", { type: "resume" }],
  ] as const)("%s continues, and the count begins anew", (_, event) => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 5, "same");
    expect(rig.state()).toEqual({ status: "stuck" });
    rig.send(event);
    repeat(rig, 6, 3, "same");
    expect(rig.children().join()).toMatch(/^model-9-\d$/);
  });

  test("a conversation that an older build has stored goes on: it has no steps, no queue, nothing spent", () => {
    const rig = startConversation({ prompt: "go" });
    const since = new Set(["steps", "nudge", "spent", "queue"]);
    const known = Object.entries(rig.snapshot().context).filter(([field]) => !since.has(field));
    const context = ConversationContext.parse({ ...Object.fromEntries(known), repeat: { fingerprint: "x", count: 3 } });
    expect(turn.stuckPattern(context)).toBeUndefined();
    expect(turn.withStepOver(context).steps).toHaveLength(1);
    expect(turn.withReply(context, reply("done"), []).spent).toEqual({ tokens: 15 });
    expect(turn.withModelCall({ ...context, messagesTaken: 1 })).toMatchObject({ iteration: 2 });
  });
});

describe("tools that run at the same time", () => {
  const two = testAgent({ limits: { maxIterations: 9, maxTurnMs: 60_000, maxParallelTools: 2 } });
  const started = (calls = ["a", "b", "c", "d"], agent = two): ConversationRig => {
    const rig = startConversation({ agent, prompt: "go" });
    rig.reply(reply("", [...calls.map((id) => readCall(id)), taskCall("t"), askCall("q")]));
    return rig;
  };

  test("no more than the agent allows; each end starts the next one, in order; every call has its result", () => {
    const rig = started();
    expect(rig.children()).toEqual(["call-1-t", "call-1-q", "call-1-a", "call-1-b"]);
    rig.settle("call-1-b", "B");
    expect(rig.children()).toEqual(["call-1-t", "call-1-q", "call-1-a", "call-1-c"]);
    rig.settle("call-1-t", { taskId: "t", status: "completed", result: "T" });
    expect(rig.children()).toEqual(["call-1-q", "call-1-a", "call-1-c"]);
    rig.fail("call-1-a", new Error("no disk"));
    rig.settle("call-1-d", "D");
    rig.settle("call-1-c", "C");
    rig.settle("call-1-q", { waitId: "w", status: "answered", answer: "yes", by: "owner" });
    const shown = rig.modelStarts[1]?.transcript ?? [];
    expect(problemOfHistory(shown)).toBeUndefined();
    const last = shown.at(-1);
    const results = last?.role === "tool" ? last.results : [];
    expect(results.map(({ callId, ok }) => `${callId} ${String(ok)}`)).toEqual([
      "a false",
      "b true",
      "c true",
      "d true",
      "t true",
      "q true",
    ]);
    expect(rig.snapshot().context.queue).toEqual([]);
  });

  test("a call that waits its turn can be cancelled, and never starts", () => {
    const rig = started(["a", "b", "c"]);
    rig.send({ type: "cancelTask", callId: "c" });
    rig.settle("call-1-a", "A");
    rig.settle("call-1-b", "B");
    expect(rig.children()).toEqual(["call-1-t", "call-1-q"]);
  });

  test("cancelling one that runs starts the next", () => {
    const rig = started(["a", "b", "c"]);
    rig.send({ type: "cancelTask", callId: "a" });
    expect(rig.children()).toEqual(["call-1-t", "call-1-q", "call-1-b", "call-1-c"]);
  });

  test.each(["interrupt", "close"] as const)(
    "%s: none of those that wait ever starts, each has its one result",
    (type) => {
      const rig = started();
      rig.send({ type });
      expect(rig.children()).toEqual(["call-1-t", "call-1-q"]);
      const last = rig.transcript().at(-1);
      expect(last?.role === "tool" ? last.results : []).toHaveLength(6);
    },
  );

  test("without a limit all start at once", () => {
    expect(started(undefined, testAgent()).children()).toHaveLength(6);
  });
});

describe("budget", () => {
  const usual: Readonly<Record<string, ModelPrice>> = {
    "test-model": { inputMicroUsd: 1_000_000, outputMicroUsd: 2_000_000 },
  };
  const paying = (limits: object, prices = usual) =>
    testAgent({ limits: { maxIterations: 9, maxTurnMs: 60_000, ...limits }, prices });
  const failure = (rig: ConversationRig) => rig.snapshot().context.lastFailure;

  test("tokens: the step that spends the last one is carried out, no further model call is made", () => {
    const rig = startConversation({ agent: paying({ maxTokens: 30 }), prompt: "go" });
    repeat(rig, 1, 2, "same");
    expect(rig.state()).toEqual({ status: "error" });
    expect(failure(rig)).toMatchObject({
      cause: "limit",
      code: "HF-5202",
      message: expect.stringContaining("30 tokens"),
    });
    expect(rig.transcript().at(-1)).toMatchObject({ role: "tool" });
  });

  test("money: counted by the price of the model that was called", () => {
    const rig = startConversation({ agent: paying({ maxCostMicroUsd: 40 }), prompt: "go" });
    repeat(rig, 1, 1, "same"); // 10 × 1 + 5 × 2
    expect(rig.state()).toEqual({ status: "running" });
    repeat(rig, 2, 1, "same");
    expect(failure(rig)).toMatchObject({ cause: "limit", message: expect.stringContaining("40 were spent") });
  });

  test("an answer that spends the last of it is an answer", () => {
    const rig = startConversation({ agent: paying({ maxTokens: 15, maxCostMicroUsd: 20 }), prompt: "go" });
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("a model without a price fits no budget in money: nothing is not a price", () => {
    const rig = startConversation({ agent: paying({ maxCostMicroUsd: 1_000_000 }, {}), prompt: "go" });
    repeat(rig, 1, 1, "same");
    expect(failure(rig)?.message).toContain("no price");
    const priced = startConversation({ agent: paying({ maxCostMicroUsd: 100 }), prompt: "go" });
    expect(priced.send({ type: "switchModel", model: "unknown" })).toBe(false);
    const { value, context } = priced.snapshot();
    const why = noEffectOf("conversation", context, value, { type: "switchModel", model: "unknown" });
    expect(why).toMatchObject({ kind: "refused", code: "HF-5202" });
  });

  test("a message of a person, and resume, give a full one", () => {
    for (const event of [{ type: "userMessage", messageId: "m2", text: "go on" }, { type: "resume" }] as const) {
      const rig = startConversation({ agent: paying({ maxTokens: 30 }), prompt: "go" });
      repeat(rig, 1, 2, "same");
      rig.send(event);
      repeat(rig, 3, 1, "same");
      expect(rig.state(), event.type).toEqual({ status: "running" });
    }
  });
});

test("a tool whose node died, and of which nobody knows whether it ran, says so: its cause is the death of a node", () => {
  const rig = startConversation({ prompt: "go" });
  rig.reply(reply("", [readCall("a")]));
  rig.fail("call-1-a", { name: "RuntimeFault", code: "HF-3010", message: "may have run" });
  expect(JSON.stringify(rig.transcript().at(-1))).toContain('\\"cause\\":\\"nodeDeath\\"');
});

describe("a model call that gives no answer", () => {
  test.each([
    ["an error with a code", { name: "RuntimeFault", message: "refused", code: "HF-5001" }, "modelError", "HF-5001"],
    ["an Error", new Error("boom"), "modelError", "HF-5003"],
    ["a thrown string", "boom", "modelError", "HF-5003"],
    ["nothing", undefined, "modelError", "HF-5003"],
  ])("%s: status error with its cause; a message continues", (_, error, cause, code) => {
    const rig = startConversation({ prompt: "go" });
    rig.failModel(error);
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.snapshot().context.lastFailure).toMatchObject({ cause, code });
    rig.say("m2");
    expect(rig.modelStarts.at(-1)?.transcript.map((message) => message.role)).toEqual(["user", "user"]);
  });

  test("something that is no reply", () => {
    const rig = startConversation({ prompt: "go" });
    rig.settle("model-1-1", { text: 7 });
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.snapshot().context.lastFailure).toMatchObject({ cause: "modelError", code: "HF-5004" });
    expect(rig.transcript()).toHaveLength(1);
  });

  test.each([
    ["length", "limit"],
    ["contentFilter", "policy"],
  ] as const)("an answer cut off by %s is kept, and is no success", (finishReason, cause) => {
    const rig = startConversation({ prompt: "go" });
    rig.reply({ ...reply("half an ans"), finishReason });
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.snapshot().context).toMatchObject({ lastText: "half an ans", lastFailure: { cause } });
    expect(rig.transcript().at(-1)).toMatchObject({ role: "assistant", text: "half an ans" });
  });

  test("an empty answer ends a turn and leaves nothing in the history", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply(""));
    expect(rig.state()).toEqual({ status: "idle" });
    expect(rig.transcript()).toHaveLength(1);
  });

  test("an answer longer than the snapshot may hold is bounded there and whole in the transcript", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("x".repeat(100_000)));
    expect(rig.snapshot().context.lastText.length).toBeLessThan(33_000);
    expect(rig.transcript().at(-1)).toMatchObject({ text: "x".repeat(100_000) });
  });
});

describe("messages while a turn runs", () => {
  test("C3: taken in by the next model call, in order, once", () => {
    const rig = startConversation({ prompt: "go" });
    rig.say("m1");
    rig.reply(reply("", [readCall("a")]));
    rig.say("m2");
    rig.settle("call-1-a", "A");
    expect(rig.modelStarts[1]?.transcript.map((m) => (m.role === "user" ? m.messageId : m.role))).toEqual([
      "prompt",
      "assistant",
      "tool",
      "m1",
      "m2",
    ]);
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("one that arrives during the last model call opens another turn", () => {
    const rig = startConversation({ prompt: "go" });
    rig.say("m1");
    rig.reply(reply("first"));
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.modelStarts[1]?.transcript.map((m) => (m.role === "user" ? m.messageId : m.role))).toEqual([
      "prompt",
      "assistant",
      "m1",
    ]);
  });

  test("one that arrives during a model call that fails is not stranded", () => {
    const rig = startConversation({ prompt: "go" });
    rig.say("m1");
    rig.failModel(new Error("boom"));
    expect(rig.children()).toEqual(["model-2-2"]);
  });

  test("one that arrives during an open question never answers it", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [askCall("c")]));
    rig.say("no");
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
    expect(rig.sent).toEqual(["call-1-c awaited"]);
  });

  test("a message id counts once", () => {
    const rig = startConversation({ prompt: "go" });
    expect(rig.say("m1")).toBe(true);
    expect(rig.say("m1")).toBe(false);
    rig.reply(reply("first"));
    expect(rig.say("m1")).toBe(false);
    expect(rig.transcript().filter((message) => message.role === "user")).toHaveLength(2);
  });

  test("the queue is bounded, and what is refused is not accepted", () => {
    const rig = startConversation({ prompt: "go" });
    for (let n = 0; n < 64; n += 1) expect(rig.say(`m${n}`)).toBe(true);
    expect(rig.say("one too many")).toBe(false);
    rig.reply(reply("first"));
    expect(rig.modelStarts[1]?.transcript).toHaveLength(66);
    expect(rig.say("one-more")).toBe(true);
  });
});
