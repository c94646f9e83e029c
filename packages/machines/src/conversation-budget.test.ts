import type { Budget } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { CHEAPER, RAISED, STOP } from "./conversation-budget.ts";
import { listFieldsOf } from "./list-fields.ts";
import { conversationMachine } from "./conversation.machine.ts";
import { startChild } from "./testing/child-rig.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { readCall, reply, taskCall, testAgent, testChief } from "./testing/test-agent.ts";

const budget: Budget = { wallet: "w1", whenSpent: "wait" };
const start = (more: Partial<Budget> = {}) => startConversation({ prompt: "go", budget: { ...budget, ...more } });
const refusal = (scope: "root" | "global" | "task" = "root", more: object = {}) => ({
  name: "RuntimeFault",
  code: "HF-5301",
  message: "Wallet w1: What is left does not cover the call. Raise the limit.",
  facts: { wallet: "w1", scope, ...more },
});
const spent = { fence: "fence-1" };
const working = (rig: ConversationRig) => {
  rig.reply(reply("", [readCall("a")]));
  rig.settle("call-1-a", "A");
};
const answer = (rig: ConversationRig, value: string) =>
  rig.settle("budget-1", { waitId: "w", status: "answered", answer: value, by: "owner" });

test("a conversation without a budget asks nobody for money", () => {
  const rig = startConversation({ prompt: "go" });
  expect(rig.jobInput("model-1-1")).not.toHaveProperty("payer");
});

test("the model call of one with a budget names who pays", () => {
  expect(start().jobInput("model-1-1")).toMatchObject({ payer: { wallet: "w1" } });
});

test("a task of it pays from the same wallet, and from one of its own where there is a limit for each", () => {
  const agents = testChief();
  const rig = startConversation({ ...agents, prompt: "go", budget: { ...budget, perTask: { tokens: 9 } } });
  rig.reply(reply("", [taskCall("b")]));
  expect(rig.jobInput("call-1-b")).toMatchObject({ budget: { wallet: "w1", perTask: { tokens: 9 } } });
  const parentTask = { taskId: "t1", callId: "b", depth: 1 };
  const below = startConversation({ prompt: "go", parentTask, budget: { ...budget, perTask: { tokens: 9 } } });
  expect(below.jobInput("model-1-1")).toMatchObject({
    payer: { wallet: "w1", own: { id: expect.stringMatching(/^task-[a-z2-7]{26}$/), limit: { tokens: 9 } } },
  });
});

describe("a wallet that is spent", () => {
  test("lets it rest, waiting on the budget; messages wait, and only a person lets it go on", () => {
    const rig = start();
    working(rig);
    rig.failModel(refusal("root", spent));
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "budget" });
    expect(listFieldsOf("conversation", rig.snapshot().context, rig.snapshot().value)).toMatchObject({
      status: "waiting",
      waitingOn: "budget",
    });
    expect(rig.snapshot().hasTag("idle")).toBe(true);
    expect(rig.children()).toEqual([]);
    expect(rig.say("m2")).toBe(true);
    rig.clock.increment(30 * 24 * 3_600_000);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "budget" });
    rig.send({ type: "resume" });
    expect(rig.state()).toEqual({ status: "running" });
    const payer = { wallet: "w1", pass: "fence-1" };
    expect(rig.jobInput("model-3-2")).toMatchObject({ payer });
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("that refuses again lets it rest again, and no refusal counts as a model call of the turn", () => {
    const rig = startConversation({
      agent: testAgent({ limits: { maxIterations: 2, maxTurnMs: 60_000 } }),
      prompt: "go",
      budget,
    });
    for (let n = 0; n < 5; n += 1) {
      rig.failModel(refusal());
      expect(rig.state()).toEqual({ status: "waiting", waitingOn: "budget" });
      rig.send({ type: "resume" });
    }
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test.each(["interrupt", "pause", "close"] as const)("can be left by %s", (type) => {
    const rig = start({ whenSpent: "ask" });
    rig.failModel(refusal());
    rig.send({ type });
    rig.settle("budget-1", { waitId: "w", status: "cancelled" });
    expect(rig.state().status).toBe(type === "close" ? "closed" : "paused");
    expect(rig.snapshot().context.ending).toEqual([]);
  });

  test("above all others ends what has begun, and lets rest what has not", () => {
    const begun = start();
    working(begun);
    begun.failModel(refusal("global"));
    expect(begun.state()).toEqual({ status: "error" });
    expect(begun.snapshot().context.lastFailure).toMatchObject({
      cause: "limit",
      code: "HF-5301",
      message: expect.stringContaining("budget_exhausted, scope global"),
    });
    const fresh = start();
    fresh.failModel(refusal("global"));
    expect(fresh.state()).toEqual({ status: "waiting", waitingOn: "budget" });
  });

  test("ends it where its budget says so", () => {
    const rig = start({ whenSpent: "stop" });
    rig.failModel(refusal());
    expect(rig.state()).toEqual({ status: "error" });
  });

  test("tells the task that it waits", () => {
    const parentTask = { taskId: "t1", callId: "b", depth: 1 };
    const rig = startChild(conversationMachine, { agent: testAgent(), prompt: "go", parentTask, budget });
    rig.fail("model-1-1", refusal());
    expect(rig.received).toEqual([{ type: "conversationStatus", status: "waiting" }]);
  });
});

test.each(["wait", "ask", "stop"] as const)(
  "a wallet that cannot be asked: with %s nothing runs, nothing ends, and nobody is asked",
  (whenSpent) => {
    const rig = start({ whenSpent });
    working(rig);
    const before = rig.snapshot().context.usage;
    rig.failModel({ ...refusal("root", { reason: "HF-2002" }), code: "HF-5308" });
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "budget" });
    expect(rig.children()).toEqual([]);
    rig.send({ type: "resume" });
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
    expect(rig.snapshot().context.usage.modelCalls).toBe(before.modelCalls + 1);
  },
);

describe("a person who is asked", () => {
  const asked = (more: Partial<Budget> = {}) => {
    const rig = start({ whenSpent: "ask", ...more });
    rig.failModel(refusal("root", spent));
    return rig;
  };

  test("is offered what there is", () => {
    expect(asked().jobInput("budget-1")).toMatchObject({ options: [RAISED, STOP] });
    expect(asked({ cheaperModel: "m2" }).jobInput("budget-1")).toMatchObject({ options: [RAISED, CHEAPER, STOP] });
  });

  test("and has raised the limit lets it go on", () => {
    const rig = asked();
    answer(rig, RAISED);
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.jobInput("model-2-1")).toMatchObject({ payer: { pass: "fence-1" } });
    expect(rig.children()).toEqual(["model-2-1"]);
  });

  test("and chooses the cheaper model goes on with it", () => {
    const rig = asked({ cheaperModel: "m2" });
    answer(rig, CHEAPER);
    expect(rig.jobInput("model-2-1")).toMatchObject({ agent: { model: "m2" } });
  });

  test("and wants it stopped ends the turn", () => {
    const rig = asked();
    answer(rig, STOP);
    expect(rig.state()).toEqual({ status: "error" });
    expect(rig.children()).toEqual([]);
  });

  test("and says nothing leaves it as it is", () => {
    const rig = asked();
    rig.settle("budget-1", { waitId: "w", status: "expired" });
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "budget" });
    rig.send({ type: "resume" });
    expect(rig.state()).toEqual({ status: "running" });
  });

  test("and lets it go on otherwise has the question withdrawn", () => {
    const rig = asked();
    rig.send({ type: "resume" });
    expect(rig.snapshot().context).toMatchObject({ budgetQuestion: undefined, ending: ["budget-1"] });
  });
});

test("while the wallet is fenced, a reply starts no tasks, and its transcript says so", () => {
  const rig = startConversation({ ...testChief(), prompt: "go", budget });
  rig.reply({ ...reply("", [taskCall("b")]), isFenced: true });
  expect(rig.children().filter((id) => id.startsWith("call-"))).toEqual([]);
  const result = rig.transcript().at(-1);
  expect(JSON.stringify(result)).toContain("root_budget_fence");
  expect(problemOfHistory(rig.transcript())).toBeUndefined();
});
