import { createEmptyActor, getNextSnapshot } from "xstate";
import { describe, expect, test } from "vitest";
import { conversationMachine } from "./conversation.machine.ts";
import { taskMachine } from "./task.machine.ts";
import { READER, testAgent } from "./testing/test-agent.ts";

// What the first versions of the machines stored, as they stored it: without the fields that came later.

const usage = { modelCalls: 1, inputTokens: 10, outputTokens: 5 };

describe("a task of version 1", () => {
  const context = {
    taskId: "t1",
    callId: "b",
    childId: "call-1-b",
    subagent: READER,
    agents: {},
    prompt: "work",
    description: "",
    deadlineMs: 60_000,
    depth: 1,
    conversationStatus: "running" as const,
  };
  const stored = (value: "bounded" | "unbounded") => ({
    ...taskMachine.resolveState({ value: { active: value }, context }),
    children: { conversation: createEmptyActor() },
  });
  // The events of children and timers are no events of the machine's types.
  const after = (value: "bounded" | "unbounded", event: Parameters<typeof taskMachine.transition>[1]) =>
    getNextSnapshot(taskMachine, stored(value), event);

  test("ends with the answer of its conversation", () => {
    const output = { conversationId: "conv", usage, outcome: "answered", text: "42" };
    const ended = after("unbounded", { type: "xstate.done.actor.conversation", output });
    expect(ended).toMatchObject({ status: "done", output: { status: "completed", result: "42" } });
  });

  test("keeps the deadline it has", () => {
    expect(after("bounded", { type: "xstate.after.deadline.task.active.bounded" }).value).toEqual({
      active: "stopping",
    });
  });

  test.each(["bounded", "unbounded"] as const)("%s, is cancelled", (value) => {
    expect(after(value, { type: "cancel" }).value).toEqual({ active: "stopping" });
  });
});

describe("a conversation of version 1", () => {
  const call = { callId: "b", childId: "call-1-b", name: "task", kind: "delegate", isOpen: true, digest: "d" } as const;
  const context = {
    conversationId: "c1",
    agent: testAgent(),
    agents: { reader: READER },
    tags: {},
    iteration: 1,
    messages: 1,
    messagesTaken: 1,
    messageIds: ["m1"],
    calls: [{ ...call, isWaitingForPerson: false }],
    ending: [],
    isPauseRequested: false,
    pausedBy: "pause" as const,
    repeat: { fingerprint: "", count: 0 },
    usage,
    lastText: "",
    outcome: "closed" as const,
    reported: "running" as const,
  };
  const acting = {
    ...conversationMachine.resolveState({ value: { turn: { working: "acting" } }, context }),
    children: { "call-1-b": createEmptyActor() },
  };

  test("takes the result of a task that it started then, and goes on", () => {
    const output = { taskId: "t1", status: "completed", result: "42" };
    const next = getNextSnapshot(conversationMachine, acting, { type: "xstate.done.actor.call-1-b", output });
    expect(next.value).toEqual({ turn: { working: "thinking" } });
    expect(next.context.calls).toEqual([]);
  });

  test("can be interrupted", () => {
    const next = getNextSnapshot(conversationMachine, acting, { type: "interrupt" });
    expect(next.value).toBe("paused");
    expect(next.context.ending).toEqual(["call-1-b"]);
  });
});
