import { describe, expect, test } from "vitest";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, permutations, readCall, reply, taskCall, testAgent } from "./testing/test-agent.ts";

const completed = (text: string) => ({ taskId: "t", status: "completed", result: text, conversationId: "x" });
const answered = (answer: string) => ({ waitId: "w", status: "answered", answer, by: "owner" });

describe("a turn", () => {
  test("a conversation without a prompt rests until a message comes", () => {
    const rig = startConversation();
    expect(rig.state()).toEqual({ status: "idle" });
    expect(rig.snapshot().hasTag("idle")).toBe(true);
    expect(rig.children()).toEqual([]);
    expect(rig.say("m1")).toBe(true);
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.children()).toEqual(["model-1-1"]);
  });

  test("a prompt is the first user message", () => {
    const rig = startConversation({ prompt: "hello" });
    expect(rig.modelStarts[0]?.transcript).toEqual([{ role: "user", messageId: "prompt", text: "hello" }]);
  });

  test("an answer ends the turn and usage is counted", () => {
    const rig = startConversation({ prompt: "hello" });
    rig.reply(reply("hi"));
    expect(rig.state()).toEqual({ status: "idle" });
    expect(rig.children()).toEqual([]);
    expect(rig.snapshot().context).toMatchObject({
      lastText: "hi",
      usage: { modelCalls: 1, inputTokens: 10, outputTokens: 5 },
    });
  });

  test("each call runs where its tool says, all at once", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(
      reply("", [
        readCall("a"),
        { callId: "b", name: "post", input: { path: "p" } },
        { callId: "c", name: "deploy", input: { path: "p" } },
        taskCall("d"),
        askCall("e"),
      ]),
    );
    const sources = Object.values(rig.snapshot().children).map((child) => [child?.id, child?.src]);
    expect(sources).toEqual([
      ["call-1-d", "task"],
      ["call-1-e", "ownerWait"],
      ["call-1-a", "tool.run.idempotent"],
      ["call-1-b", "tool.run.dedupeKey"],
      ["call-1-c", "tool.run.unsafe"],
    ]);
    expect(rig.state()).toEqual({ status: "running" });
  });

  test("a child is forgotten once its result is there", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a"), readCall("b")]));
    rig.settle("call-1-a", "A");
    expect(rig.children()).toEqual(["call-1-b"]);
  });
});

describe("C1, C2, T2: results in every order", () => {
  const outcomes: Readonly<Record<string, (rig: ConversationRig) => boolean>> = {
    a: (rig) => rig.settle("call-1-a", { ok: true, content: "A" }),
    b: (rig) => rig.settle("call-1-b", completed("B")),
    c: (rig) => rig.settle("call-1-c", answered("yes")),
    d: (rig) => rig.fail("call-1-d", new Error("disk on fire")),
  };
  const run = (order: readonly string[]) => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("working", [readCall("a"), taskCall("b"), askCall("c"), readCall("d")]));
    for (const [index, id] of order.entries()) {
      expect(rig.modelStarts).toHaveLength(1);
      expect(outcomes[id]?.(rig), `${id}, ${index}`).toBe(true);
      expect(outcomes[id]?.(rig), `${id} again`).toBe(false);
    }
    return rig;
  };
  const expected = run(["a", "b", "c", "d"]).modelStarts[1]?.transcript;

  test("the model is told every result in call order", () => {
    expect(expected?.at(-1)).toEqual({
      role: "tool",
      results: [
        { callId: "a", name: "read", ok: true, content: "A" },
        { callId: "b", name: "task", ok: true, content: "B" },
        { callId: "c", name: "ask_owner", ok: true, content: '{"answer":"yes","by":"owner"}' },
        {
          callId: "d",
          name: "read",
          ok: false,
          content: '{"error":{"cause":"toolError","code":"HF-5103","message":"disk on fire"}}',
        },
      ],
    });
    expect(problemOfHistory(expected ?? [])).toBeUndefined();
  });

  test.each(permutations(["a", "b", "c", "d"]).map((order) => [order.join(" ")]))("order %s", (order) => {
    const rig = run(order.split(" "));
    expect(rig.modelStarts).toHaveLength(2);
    expect(rig.modelStarts[1]?.transcript).toEqual(expected);
    expect(rig.children()).toEqual(["model-2-1"]);
  });
});

describe("status while calls are open", () => {
  test("waiting on tasks when only tasks are open, on the owner as soon as a person is needed", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a"), taskCall("b"), askCall("c")]));
    expect(rig.state()).toEqual({ status: "running" });
    rig.settle("call-1-a", "A");
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
    rig.settle("call-1-c", answered("no"));
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "waiting" });
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "running" });
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
  });

  test("the asker says when the outcome of a wait has reached it", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [askCall("c")]));
    rig.settle("call-1-c", answered("no"));
    expect(rig.emitted).toContainEqual({ type: "waitConsumed", waitId: "w", callId: "c" });
  });
});

describe("calls that cannot be carried out", () => {
  test.each([
    ["an unknown tool", { callId: "x", name: "fly", input: {} }, "HF-5101"],
    ["bad arguments of a local tool", { callId: "x", name: "read", input: {} }, "HF-5102"],
    ["arguments that are no object", { callId: "x", name: "read", input: "{broken" }, "HF-5102"],
    ["bad arguments of a delegation", { callId: "x", name: "task", input: { prompt: 7 } }, "HF-5102"],
    ["an unknown agent", { callId: "x", name: "task", input: { subagent: "nobody", prompt: "p" } }, "HF-5201"],
    ["bad arguments of a question", { callId: "x", name: "ask_owner", input: { options: [] } }, "HF-5102"],
  ])("%s: the model is told at once", (_, call, code) => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [call]));
    expect(rig.children()).toEqual(["model-2-1"]);
    const history = rig.modelStarts[1]?.transcript ?? [];
    expect(problemOfHistory(history)).toBeUndefined();
    expect(history.at(-1)).toMatchObject({ role: "tool", results: [{ callId: "x", ok: false }] });
    expect(JSON.stringify(history.at(-1))).toContain(code);
  });

  test("a call beside a refused one still runs", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [{ callId: "x", name: "fly", input: {} }, readCall("a")]));
    expect(rig.children()).toEqual(["call-1-a"]);
    rig.settle("call-1-a", "A");
    expect(problemOfHistory(rig.modelStarts[1]?.transcript ?? [])).toBeUndefined();
  });

  test("calls of one id, and ids outside of the alphabet, each get their own result", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a.b", "1"), readCall("a.b", "2"), readCall("a-b", "3")]));
    expect(rig.children()).toEqual(["call-1-a-b", "call-1-a-b-2", "call-1-a-b-3"]);
    for (const id of rig.children()) rig.settle(id, id);
    expect(problemOfHistory(rig.modelStarts[1]?.transcript ?? [])).toBeUndefined();
  });

  test("of too many calls the last are refused, none is lost", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(
      reply(
        "",
        Array.from({ length: 70 }, (_, n) => readCall(`c${n}`)),
      ),
    );
    expect(rig.children()).toHaveLength(64);
    for (const id of rig.children()) rig.settle(id, "done");
    const last = rig.modelStarts[1]?.transcript.at(-1);
    expect(last?.role === "tool" ? last.results.map((result) => result.ok) : []).toEqual(
      Array.from({ length: 70 }, (_, n) => n < 64),
    );
  });

  test("a task that failed is an error with its cause and what there is of a result", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [taskCall("b")]));
    rig.settle("call-1-b", { taskId: "t", status: "failed", cause: "limit", message: "No answer", partial: "half" });
    const last = rig.modelStarts[1]?.transcript.at(-1);
    const [result] = last?.role === "tool" ? last.results : [];
    expect(result?.ok).toBe(false);
    expect(JSON.parse(result?.content ?? "")).toMatchObject({
      error: { cause: "limit", message: "No answer", partial: "half", taskId: "t", status: "failed" },
    });
  });

  test.each([
    ["a question", "c"],
    ["a task", "b"],
  ])("%s that broke is an error result, not a wedge", (_, id) => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [id === "c" ? askCall("c") : taskCall("b")]));
    rig.fail(`call-1-${id}`, { name: "Error", message: "no such actor type", code: "HF-3002" });
    expect(rig.children()).toEqual(["model-2-1"]);
    expect(JSON.stringify(rig.transcript().at(-1))).toContain("no such actor type");
  });

  test("an agent that may delegate nothing is told so", () => {
    const rig = startConversation({ agent: testAgent({ delegates: [] }), prompt: "go" });
    rig.reply(reply("", [taskCall("b")]));
    expect(JSON.stringify(rig.transcript().at(-1))).toContain("Available: none");
  });
});
