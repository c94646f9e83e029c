import { describe, expect, test } from "vitest";
import { startConversation } from "./testing/conversation-rig.ts";
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
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "running" });
    rig.clock.increment(60_000);
    expect(rig.state()).toEqual({ status: "error" });
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
  test("four equal steps with equal results", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 3, "same");
    expect(rig.state()).toEqual({ status: "running" });
    repeat(rig, 4, 1, "same");
    expect(rig.state()).toEqual({ status: "stuck" });
    expect(rig.snapshot().context.lastFailure?.cause).toBe("stuck");
  });

  test("another result is progress", () => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 3, "same");
    repeat(rig, 4, 3, "other");
    expect(rig.state()).toEqual({ status: "running" });
  });

  test.each([
    ["a message", { type: "userMessage", messageId: "m2", text: "go on" }],
    ["resume", { type: "resume" }],
  ] as const)("%s continues, and the count begins anew", (_, event) => {
    const rig = startConversation({ prompt: "go" });
    repeat(rig, 1, 4, "same");
    rig.send(event);
    repeat(rig, 5, 3, "same");
    expect(rig.state()).toEqual({ status: "running" });
  });
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
    expect(rig.sent).toEqual([]);
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
