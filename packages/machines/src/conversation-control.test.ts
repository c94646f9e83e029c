import { describe, expect, test } from "vitest";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, readCall, reply, taskCall } from "./testing/test-agent.ts";

const mixed = reply("", [readCall("a"), taskCall("b"), askCall("c")]);

// Every state in which a conversation can be met, and the way there.
const WAYS = {
  idle: () => startConversation(),
  thinking: () => startConversation({ prompt: "go" }),
  acting: () => to(startConversation({ prompt: "go" }), (rig) => rig.reply(mixed)),
  waitingForTasks: () => to(startConversation({ prompt: "go" }), (rig) => rig.reply(reply("", [taskCall("b")]))),
  asking: () => to(startConversation({ prompt: "go" }), (rig) => rig.reply(reply("", [askCall("c")]))),
  paused: () =>
    to(startConversation({ prompt: "go" }), (rig) => {
      rig.send({ type: "pause" });
      rig.reply(reply("", [readCall("a")]));
      rig.settle("call-1-a", "A");
    }),
  interrupted: () => to(startConversation({ prompt: "go" }), (rig) => rig.send({ type: "interrupt" })),
  error: () => to(startConversation({ prompt: "go" }), (rig) => rig.failModel(new Error("no model"))),
  stuck: () =>
    to(startConversation({ prompt: "go" }), (rig) => {
      for (const n of [1, 2, 3, 4, 5]) {
        rig.reply(reply("", [readCall("a")]));
        rig.settle(`call-${n}-a`, "same");
      }
    }),
} as const;
const EVERY_STATE = [
  "idle",
  "thinking",
  "acting",
  "waitingForTasks",
  "asking",
  "paused",
  "interrupted",
  "error",
  "stuck",
] as const;

function to(rig: ConversationRig, way: (rig: ConversationRig) => void): ConversationRig {
  way(rig);
  return rig;
}

const start = (state: keyof typeof WAYS) => WAYS[state]();
const at = (rig: ConversationRig) => [rig.state().status, JSON.stringify(rig.snapshot().value)].join(" ");

describe("where a conversation may rest", () => {
  test.each([
    ["idle", "idle", true],
    ["thinking", "running", false],
    ["acting", "running", false],
    ["waitingForTasks", "waiting", false],
    ["asking", "waiting", false],
    ["paused", "paused", true],
    ["interrupted", "paused", true],
    ["error", "error", true],
    ["stuck", "stuck", true],
  ] as const)("%s has status %s", (state, status, rests) => {
    const rig = start(state);
    expect(rig.state().status).toBe(status);
    expect(rig.snapshot().hasTag("idle")).toBe(rests);
    // I9: what does not rest has something that will wake it.
    expect(rig.children().length > 0).toBe(!rests);
  });
});

describe("pause", () => {
  test.each(["idle", "paused", "error", "stuck"] as const)("in %s it does nothing, now or later", (state) => {
    const rig = start(state);
    expect(rig.send({ type: "pause" })).toBe(false);
    if (state === "paused") return;
    rig.say("m9");
    rig.reply(reply("ok"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("during a model call: its tool calls still run, the next model call does not", () => {
    const rig = start("thinking");
    expect(rig.send({ type: "pause" })).toBe(true);
    expect(rig.send({ type: "pause" })).toBe(false);
    rig.reply(reply("", [readCall("a")]));
    expect(rig.state().status).toBe("running");
    rig.settle("call-1-a", "A");
    expect(rig.state()).toEqual({ status: "paused" });
    expect(rig.children()).toEqual([]);
  });

  test("a turn that ends anyway leaves no pause behind", () => {
    const rig = start("thinking");
    rig.send({ type: "pause" });
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
    rig.say("m2");
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-2-a", "A");
    expect(rig.state()).toEqual({ status: "running" });
  });

  test("a message that waits is held by it, until resume", () => {
    const rig = start("paused");
    expect(rig.say("m2")).toBe(true);
    expect(rig.state()).toEqual({ status: "paused" });
    rig.send({ type: "resume" });
    expect(rig.modelStarts.at(-1)?.transcript.at(-1)).toMatchObject({ messageId: "m2" });
  });

  test("a message accepted before an answer is held by a pause, too", () => {
    const rig = start("thinking");
    rig.say("m2");
    rig.send({ type: "pause" });
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "paused" });
    rig.send({ type: "resume" });
    expect(rig.children()).toEqual(["model-2-2"]);
  });

  test("resume before it takes effect withdraws it", () => {
    const rig = start("acting");
    rig.send({ type: "pause" });
    expect(rig.send({ type: "resume" })).toBe(true);
    expect(rig.send({ type: "resume" })).toBe(false);
    rig.settle("call-1-a", "A");
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
    rig.settle("call-1-c", { waitId: "w", status: "answered", answer: "yes", by: "owner" });
    expect(rig.state()).toEqual({ status: "running" });
  });
});

describe("resume", () => {
  test.each(["idle", "thinking", "acting", "asking"] as const)("in %s it does nothing", (state) => {
    expect(start(state).send({ type: "resume" })).toBe(false);
  });

  test.each(["paused", "interrupted", "error", "stuck"] as const)("from %s the model is called again", (state) => {
    const rig = start(state);
    const calls = rig.modelStarts.length;
    expect(rig.send({ type: "resume" })).toBe(true);
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.modelStarts).toHaveLength(calls + 1);
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
  });
});

describe("interrupt", () => {
  test.each(["idle", "paused", "interrupted", "error", "stuck"] as const)("in %s it does nothing", (state) => {
    expect(start(state).send({ type: "interrupt" })).toBe(false);
  });

  test("stops the model call", () => {
    const rig = start("thinking");
    rig.send({ type: "interrupt" });
    expect(rig.state()).toEqual({ status: "paused" });
    expect(rig.children()).toEqual([]);
  });

  test("stops jobs, tells tasks and questions, and gives each open call exactly one result", () => {
    const rig = start("acting");
    rig.settle("call-1-a", "A");
    rig.send({ type: "interrupt" });
    expect(rig.sent).toEqual(["call-1-b cancel", "call-1-c cancel"]);
    const last = rig.transcript().at(-1);
    const results = last?.role === "tool" ? last.results : [];
    expect(results.map(({ callId, ok }) => [callId, ok])).toEqual([
      ["a", true],
      ["b", false],
      ["c", false],
    ]);
    expect(results[1]?.content).toContain("interrupted");
  });

  test("C4: outcomes that arrive afterwards change no result and end nothing", () => {
    const rig = start("acting");
    rig.send({ type: "interrupt" });
    const before = rig.transcript();
    expect(rig.settle("call-1-a", "A")).toBe(false);
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "late" });
    rig.fail("call-1-c", new Error("late"));
    expect(rig.transcript()).toEqual(before);
    expect(rig.children()).toEqual([]);
    expect(at(rig)).toBe('paused "paused"');
  });

  test("a message continues after it, without resume", () => {
    const rig = start("interrupted");
    rig.say("m2");
    expect(rig.state()).toEqual({ status: "running" });
  });

  test("a pause after it holds messages", () => {
    const rig = start("interrupted");
    expect(rig.send({ type: "pause" })).toBe(true);
    rig.say("m2");
    expect(rig.state()).toEqual({ status: "paused" });
  });

  test("the next step may reuse a call id while a task of the old one still ends", () => {
    const rig = start("acting");
    rig.send({ type: "interrupt" });
    rig.say("m2");
    rig.reply(reply("", [taskCall("b")]));
    expect(rig.children()).toEqual(["call-1-b", "call-1-c", "call-2-b"]);
    rig.settle("call-1-b", { taskId: "t", status: "cancelled", cause: "cancel" });
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
    rig.settle("call-2-b", { taskId: "t2", status: "completed", result: "new" });
    expect(JSON.stringify(rig.transcript().at(-1))).toContain('"content":"new"');
  });
});

describe("cancelTask", () => {
  test("ends one call; the others go on; a late outcome is nothing", () => {
    const rig = start("acting");
    expect(rig.send({ type: "cancelTask", callId: "b", reason: "too slow" })).toBe(true);
    expect(rig.send({ type: "cancelTask", callId: "b" })).toBe(false);
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "late" });
    rig.settle("call-1-a", "A");
    rig.settle("call-1-c", { waitId: "w", status: "answered", answer: "yes", by: "owner" });
    const last = rig.transcript().at(-1);
    const results = last?.role === "tool" ? last.results : [];
    expect(results.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(results[1]?.content).toContain("cancelled: too slow");
    expect(rig.sent).toEqual(["call-1-b cancel", "call-1-c awaited"]);
  });

  test("the last open call ends the step", () => {
    const rig = start("waitingForTasks");
    rig.send({ type: "cancelTask", callId: "b" });
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.children()).toEqual(["call-1-b", "model-2-1"]);
  });

  test("a local call is stopped", () => {
    const rig = start("acting");
    rig.send({ type: "cancelTask", callId: "a" });
    expect(rig.children()).toEqual(["call-1-b", "call-1-c"]);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
  });

  test.each(["idle", "thinking", "paused", "error"] as const)("in %s it does nothing", (state) => {
    expect(start(state).send({ type: "cancelTask", callId: "b" })).toBe(false);
  });

  test("completion wins: a call with a result is not cancelled", () => {
    const rig = start("acting");
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
    expect(rig.send({ type: "cancelTask", callId: "b" })).toBe(false);
  });
});

describe("close", () => {
  test.each(EVERY_STATE)("in %s it ends the conversation; afterwards nothing has an effect", (state) => {
    const rig = start(state);
    rig.send({ type: "close" });
    expect(rig.state()).toEqual({ status: "closed" });
    for (const id of rig.children()) rig.settle(id, { taskId: "t", waitId: "w", status: "cancelled" });
    expect(rig.snapshot().status).toBe("done");
    expect(rig.snapshot().output).toMatchObject({ conversationId: "c1", outcome: "closed" });
    expect(rig.say("m9")).toBe(false);
  });

  test("jobs are stopped at once, tasks and questions are told and waited for", () => {
    const rig = start("acting");
    rig.send({ type: "close" });
    expect(rig.sent).toEqual(["call-1-b cancel", "call-1-c cancel"]);
    expect(rig.children()).toEqual(["call-1-b", "call-1-c"]);
    expect(rig.snapshot().status).toBe("active");
    rig.settle("call-1-b", { taskId: "t", status: "cancelled", cause: "cancel" });
    rig.fail("call-1-c", new Error("gone"));
    expect(rig.snapshot().status).toBe("done");
  });

  test("a child that never ends does not hold it for ever", () => {
    const rig = start("waitingForTasks");
    rig.send({ type: "close" });
    rig.clock.increment(29_999);
    expect(rig.snapshot().status).toBe("active");
    rig.clock.increment(1);
    expect(rig.snapshot().status).toBe("done");
  });

  test("every open call has its result", () => {
    const rig = start("acting");
    rig.send({ type: "close" });
    const last = rig.transcript().at(-1);
    expect(last?.role === "tool" ? last.results.map(({ ok }) => ok) : []).toEqual([false, false, false]);
  });
});
