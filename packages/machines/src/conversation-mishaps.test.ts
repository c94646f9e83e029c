import type { FailureCause } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Failure } from "./failure.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, readCall, reply, taskCall, testAgent } from "./testing/test-agent.ts";

// What has left conversations of other systems unusable, tried on this one.

const shown = (rig: ConversationRig) => rig.modelStarts.at(-1)?.transcript ?? [];
const resultsOf = (rig: ConversationRig) => {
  const last = rig.transcript().findLast(({ role }) => role === "tool");
  return last?.role === "tool" ? last.results : [];
};
const ErrorResult = z.object({ error: Failure });
/** The next turn works: it is answered, with a history that providers accept. */
function expectUsable(rig: ConversationRig, messageId = "m99"): void {
  rig.say(messageId);
  expect(problemOfHistory(shown(rig))).toBeUndefined();
  expect(shown(rig).at(-1)).toMatchObject({ messageId });
  rig.reply(reply("answered"));
  expect(rig.state()).toEqual({ status: "idle" });
}

describe("outcomes that nobody waits for", () => {
  test("an outcome of a call that nobody made changes nothing, and the next turn works", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a")]));
    const before = rig.transcript();
    rig.send({ type: "xstate.done.actor.call-7-nobody", output: "orphan" });
    rig.send({ type: "xstate.error.actor.call-1-nobody", error: new Error("orphan") });
    expect(rig.transcript()).toEqual(before);
    rig.settle("call-1-a", "A");
    rig.reply(reply("done"));
    expectUsable(rig);
  });

  test("an outcome that arrives twice gives one result, the first", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a"), readCall("b")]));
    rig.send({ type: "xstate.done.actor.call-1-a", output: "first" });
    rig.send({ type: "xstate.done.actor.call-1-a", output: "second" });
    rig.send({ type: "xstate.error.actor.call-1-a", error: new Error("third") });
    rig.settle("call-1-b", "B");
    expect(resultsOf(rig).map(({ content }) => content)).toEqual(["first", "B"]);
    expect(problemOfHistory(shown(rig))).toBeUndefined();
  });

  test("a true result after the error of a restart is nothing, and the past can still be condensed", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a"), readCall("b")]));
    rig.fail("call-1-a", { name: "RuntimeFault", code: "HF-3010", message: "its node died" });
    rig.send({ type: "xstate.done.actor.call-1-a", output: "late and true" });
    rig.settle("call-1-b", "B");
    rig.send({ type: "xstate.done.actor.call-1-a", output: "later and true" });
    rig.reply(reply("done"));
    expect(JSON.stringify(rig.transcript())).not.toContain("and true");
    rig.send({ type: "condense" });
    rig.settle("condense-3-1", reply("sum"));
    expect(rig.transcript()).toHaveLength(1);
    expectUsable(rig);
  });
});

describe("what never ends", () => {
  test.each(["a model call", "a tool"] as const)(
    "%s is given up when the time of the turn is over; messages that came meanwhile are answered",
    (what) => {
      const rig = startConversation({ prompt: "go" });
      if (what === "a tool") rig.reply(reply("", [readCall("a")]));
      rig.say("m1");
      rig.say("m2");
      rig.clock.increment(3_600_000);
      expect(rig.state()).toEqual({ status: "running" });
      expect(problemOfHistory(shown(rig))).toBeUndefined();
      expect(shown(rig).slice(-2)).toMatchObject([{ messageId: "m1" }, { messageId: "m2" }]);
      rig.reply(reply("answered"));
      expectUsable(rig);
    },
  );

  test("a task is given up by its own limits or by a person; messages that came meanwhile are answered", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [taskCall("a")]));
    rig.say("m1");
    rig.clock.increment(30 * 24 * 3_600_000);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
    rig.send({ type: "cancelTask", callId: "a" });
    expect(rig.state()).toEqual({ status: "running" });
    expect(problemOfHistory(shown(rig))).toBeUndefined();
    expect(shown(rig).at(-1)).toMatchObject({ messageId: "m1" });
    rig.reply(reply("answered"));
    expectUsable(rig);
  });
});

describe("verbs without an effect", () => {
  test.each(["idle", "error"] as const)("in %s they leave nothing behind: the next message is answered", (state) => {
    const rig = startConversation({ prompt: "go" });
    if (state === "idle") rig.reply(reply("done"));
    else rig.failModel(new Error("no model"));
    for (const type of ["pause", "interrupt"] as const) expect(rig.send({ type })).toBe(false);
    expect(rig.send({ type: "cancelTask", callId: "a" })).toBe(false);
    expectUsable(rig);
  });

  test("a pause that came too late to stop anything does not stop the next turn", () => {
    const rig = startConversation({ prompt: "go" });
    rig.send({ type: "pause" });
    rig.reply(reply("done"));
    rig.say("m1");
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-2-a", "A");
    expect(rig.state()).toEqual({ status: "running" });
  });
});

test("a message during a question never answers it, and stays behind it in the history", () => {
  const rig = startConversation({ prompt: "go" });
  rig.reply(reply("", [askCall("q")]));
  rig.say("yes");
  rig.say("do NOT do that");
  expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
  rig.settle("call-1-q", { waitId: "w", status: "declined" });
  expect(resultsOf(rig)).toMatchObject([{ callId: "q", ok: false }]);
  expect(problemOfHistory(shown(rig))).toBeUndefined();
  expect(shown(rig).slice(-2)).toMatchObject([{ messageId: "yes" }, { messageId: "do NOT do that" }]);
});

test("usage counts every model call once: answers, steps, summaries, and those that failed", () => {
  const rig = startConversation({ prompt: "go" });
  rig.reply(reply("", [readCall("a")]));
  rig.settle("call-1-a", "A");
  rig.failModel(new Error("no model"));
  rig.send({ type: "condense" });
  rig.settle("condense-3-1", reply("sum"));
  rig.say("m2");
  rig.reply(reply("done"));
  expect(rig.snapshot().context.usage).toEqual({ modelCalls: 4, inputTokens: 30, outputTokens: 15 });
});

test("the model that was switched to last makes every later call, summaries too", () => {
  const rig = startConversation({ prompt: "go" });
  for (const model of ["second", "third"]) rig.send({ type: "switchModel", model });
  rig.reply(reply("done"));
  rig.send({ type: "condense" });
  expect(rig.jobInput("condense-2-1")).toMatchObject({ agent: { model: "third" } });
  rig.settle("condense-2-1", reply("sum"));
  rig.say("m2");
  expect(rig.jobInput("model-3-2")).toMatchObject({ agent: { model: "third" } });
});

describe("whatever does not succeed says why, for programs", () => {
  const callFails = (error: unknown) => (rig: ConversationRig) => {
    rig.reply(reply("", [readCall("a")]));
    rig.fail("call-1-a", error);
  };
  const WAYS: Readonly<Record<Exclude<FailureCause, "internal">, (rig: ConversationRig) => void>> = {
    nodeDeath: callFails({ name: "RuntimeFault", code: "HF-3010", message: "its node died" }),
    timeout: (rig) => rig.clock.increment(3_600_000),
    cancel: (rig) => {
      rig.reply(reply("", [readCall("a")]));
      rig.send({ type: "interrupt" });
    },
    limit: (rig) => {
      for (const id of ["a", "b"]) {
        rig.reply(reply("", [readCall(id)]));
        for (const child of rig.children()) rig.settle(child, id);
      }
    },
    stuck: (rig) => {
      for (let n = 1; n <= 2; n += 1) {
        rig.reply(reply("", [readCall("a")]));
        for (const child of rig.children()) rig.settle(child, "same");
      }
    },
    modelError: (rig) => void rig.failModel(new Error("no model")),
    toolError: callFails(new Error("no disk")),
    policy: (rig) => void rig.reply({ ...reply("half"), finishReason: "contentFilter" }),
  };

  test.each(Object.entries(WAYS))("%s", (cause, way) => {
    const maxIterations = cause === "limit" ? 2 : 9;
    const limits = { maxIterations, maxTurnMs: 3_600_000, ...(cause === "stuck" && { stuck: { repeats: 1 } }) };
    const rig = startConversation({ agent: testAgent({ limits }), prompt: "go" });
    way(rig);
    const { lastFailure } = rig.snapshot().context;
    const told = resultsOf(rig).find(({ ok }) => !ok)?.content ?? "{}";
    expect(lastFailure ?? ErrorResult.parse(JSON.parse(told)).error).toMatchObject({
      cause,
      code: expect.stringMatching(/^HF-\d{4}$/),
      message: expect.stringMatching(/./),
    });
    if (rig.state().status === "running") rig.reply(reply("went on"));
    expectUsable(rig);
  });
});
