import { describe, expect, test } from "vitest";
import { slotLogic, type SlotInput } from "./task-slot.ts";
import { taskOutputToResult } from "./task-result.ts";
import { taskStatus } from "./task-status.ts";
import { taskMachine } from "./task.machine.ts";
import { startChild, type ChildRig } from "./testing/child-rig.ts";
import { READER } from "./testing/test-agent.ts";

const usage = { modelCalls: 1, inputTokens: 1, outputTokens: 1 };
const answered = { conversationId: "conv", usage, outcome: "answered", text: "42" };
const limit = { cause: "limit", code: "HF-5202", message: "No answer after 3 model calls." };
const failed = { conversationId: "conv", usage, outcome: "failed", failure: limit, partial: "half" };
const closed = { conversationId: "conv", usage, outcome: "closed", partial: "half" };

const start = (changes: object = {}) =>
  startChild(taskMachine, { callId: "b", childId: "call-1-b", subagent: READER, prompt: "work", ...changes });
const status = (rig: ChildRig) => taskStatus(rig.child.getSnapshot().value, rig.child.getSnapshot().context);
const announced = (rig: ChildRig) => rig.emitted.map((event) => event.type);

test("it gives the work to a conversation of the sub-agent", () => {
  const rig = start({ description: "a report", depth: 2 });
  const conversation = rig.child.getSnapshot().children["conversation"];
  expect(conversation?.src).toBe("conversation");
  expect(status(rig)).toBe("running");
  expect(announced(rig)).toEqual(["taskCreated", "taskStarted"]);
});

test("K5: one that somebody pays for is queued until it is let in, by the wallet of the whole tree; a follow-up waits with it", () => {
  const asked: SlotInput[] = [];
  const doors: (() => void)[] = [];
  const left: number[] = [];
  const slot = slotLogic({
    take: (request, granted) => {
      const place = asked.push(request);
      doors.push(granted);
      return () => void left.push(place);
    },
  });
  const machine = taskMachine.provide({ actors: { slot } });
  const budget = { wallet: "w1", whenSpent: "wait" };
  const rig = startChild(machine, { callId: "b", childId: "call-1-b", subagent: READER, prompt: "work", budget });
  expect(asked).toEqual([{ isRunning: false, wallet: "w1" }]);
  expect(status(rig)).toBe("queued");
  rig.send({ type: "followUp", messageId: "f1", text: "more" });
  expect(status(rig)).toBe("queued");
  doors[0]?.();
  expect(status(rig)).toBe("running");
  expect(asked).toHaveLength(1); // what is delegated below another task takes no slot
  expect(left).toEqual([1]);
  rig.settle("conversation", answered);
  expect(status(rig)).toBe("completed");
});

describe("K1: it ends once, with a result or a cause", () => {
  test("an answer is the result", () => {
    const rig = start();
    rig.settle("conversation", answered);
    expect(rig.output()).toEqual({ taskId: "child", status: "completed", result: "42", conversationId: "conv" });
    expect(rig.received.map((event) => event.type)).toEqual(["xstate.done.actor.child"]);
    expect(status(rig)).toBe("completed");
    expect(announced(rig).at(-1)).toBe("taskCompleted");
    expect(rig.send({ type: "cancel" })).toBe(false);
    expect(rig.settle("conversation", answered)).toBe(false);
  });

  test.each([
    ["a conversation that hit a limit", failed, { status: "failed", cause: "limit", partial: "half" }],
    ["a conversation that somebody closed", closed, { status: "cancelled", cause: "cancel", partial: "half" }],
    ["an unreadable report", { text: "42" }, { status: "failed", cause: "internal" }],
    ["no report", undefined, { status: "failed", cause: "internal" }],
  ])("%s is never an empty success", (_, output, expected) => {
    const rig = start();
    rig.settle("conversation", output);
    expect(rig.output()).toMatchObject(expected);
    const result = taskOutputToResult({ callId: "b", name: "task" }, rig.output());
    expect(result.ok).toBe(false);
    expect(JSON.parse(result.content)).toMatchObject({ error: expected });
  });

  test("a conversation that broke fails the task, with the reason", () => {
    const rig = start();
    rig.fail("conversation", { name: "RuntimeFault", code: "HF-3002", message: "type unknown" });
    expect(rig.output()).toMatchObject({
      status: "failed",
      cause: "internal",
      code: "HF-3002",
      message: "type unknown",
    });
    expect(rig.received).toHaveLength(1);
  });

  test("input that does not fit ends in an error at the parent", () => {
    const rig = start({ prompt: "" });
    expect(rig.received.map((event) => event.type)).toEqual(["xstate.error.actor.child"]);
  });
});

describe("deadline", () => {
  test("without one it waits as long as it takes", () => {
    const rig = start();
    rig.clock.increment(30 * 24 * 3_600_000);
    expect(status(rig)).toBe("running");
  });

  test("at the deadline the conversation is closed and what it has is the partial result", () => {
    const rig = start({ deadlineMs: 60_000 });
    rig.clock.increment(59_999);
    expect(rig.sent).toEqual([]);
    rig.clock.increment(1);
    expect(rig.sent).toEqual(["conversation close"]);
    rig.settle("conversation", closed);
    expect(rig.output()).toMatchObject({ status: "timedOut", cause: "timeout", code: "HF-5204", partial: "half" });
    expect(announced(rig).at(-1)).toBe("taskTimedOut");
  });

  test("K2: a conversation that does not answer is left behind", () => {
    const rig = start({ deadlineMs: 60_000 });
    rig.clock.increment(60_000);
    rig.clock.increment(15_000);
    expect(rig.output()).toMatchObject({ status: "timedOut", cause: "timeout" });
  });

  test("K3: an answer that was on its way counts", () => {
    const rig = start({ deadlineMs: 60_000 });
    rig.clock.increment(60_000);
    rig.settle("conversation", answered);
    expect(rig.output()).toMatchObject({ status: "completed", result: "42" });
  });

  test("a cancel after it changes nothing", () => {
    const rig = start({ deadlineMs: 60_000 });
    rig.clock.increment(60_000);
    expect(rig.send({ type: "cancel" })).toBe(false);
    rig.settle("conversation", closed);
    expect(rig.output()).toMatchObject({ status: "timedOut" });
  });
});

describe("cancel", () => {
  test.each([
    ["with a deadline", { deadlineMs: 60_000 }],
    ["without", {}],
  ])("%s: the conversation is closed, the end says why", (_, changes) => {
    const rig = start(changes);
    expect(rig.send({ type: "cancel", reason: "not needed" })).toBe(true);
    expect(rig.send({ type: "cancel", reason: "again" })).toBe(false);
    expect(rig.sent).toEqual(["conversation close"]);
    rig.settle("conversation", closed);
    expect(rig.output()).toMatchObject({ status: "cancelled", cause: "cancel", partial: "half" });
    expect(JSON.stringify(rig.output())).toContain("not needed");
    expect(announced(rig).at(-1)).toBe("taskCancelled");
  });

  test("K2: a conversation that does not answer is left behind, the deadline no longer counts", () => {
    const rig = start({ deadlineMs: 20_000 });
    rig.clock.increment(10_000);
    rig.send({ type: "cancel" });
    rig.clock.increment(15_000);
    expect(rig.output()).toMatchObject({ status: "cancelled" });
  });

  test("a conversation that broke while it was being closed is a cancelled task", () => {
    const rig = start();
    rig.send({ type: "cancel" });
    rig.fail("conversation", new Error("boom"));
    expect(rig.output()).toMatchObject({ status: "cancelled" });
  });

  test("K3: completion wins", () => {
    const rig = start();
    rig.send({ type: "cancel" });
    rig.settle("conversation", answered);
    expect(rig.output()).toMatchObject({ status: "completed" });
  });
});

test("what its conversation waits for is told to the parent and announced, changes only", () => {
  const rig = start();
  for (const status of ["running", "waiting", "waiting", "running", "held"]) {
    rig.send({ type: "conversationStatus", status });
  }
  expect(status(rig)).toBe("held");
  expect(rig.received).toEqual([
    { type: "taskStatus", childId: "call-1-b", status: "waiting" },
    { type: "taskStatus", childId: "call-1-b", status: "running" },
    { type: "taskStatus", childId: "call-1-b", status: "held" },
  ]);
  expect(announced(rig).slice(2)).toEqual(["taskWaiting", "taskResumed", "taskHeld"]);
});
