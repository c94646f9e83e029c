import { createEmptyActor, getNextSnapshot } from "xstate";
import { describe, expect, test } from "vitest";
import { conversationMachine } from "./conversation.machine.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
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

const call = { callId: "b", childId: "call-1-b", name: "task", kind: "delegate", isOpen: true, digest: "d" } as const;
const conversationOfVersion1 = {
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

describe("a conversation of version 1", () => {
  const acting = {
    ...conversationMachine.resolveState({ value: { turn: { working: "acting" } }, context: conversationOfVersion1 }),
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

describe("an owner-wait of version 1", () => {
  const anna = { kind: "person", id: "anna", roles: [] } as const;
  const context = {
    question: "Ship it?",
    options: ["yes", "no"],
    assignee: "owner",
    onExpiry: "fail" as const,
    conversationId: "c1",
    agent: "chief",
    callId: "c",
    waitId: "w1",
    status: "open" as const,
  };
  const stored = (value: "bounded" | "unbounded") =>
    ownerWaitMachine.resolveState({
      value: { open: value },
      context: value === "bounded" ? { ...context, expiresInMs: 60_000 } : context,
    });

  test.each(["bounded", "unbounded"] as const)(
    "%s, ends with its answer: its asker waits for nothing else",
    (value) => {
      const answer = { type: "answer", answerId: "a1", value: "yes", principal: anna } as const;
      expect(getNextSnapshot(ownerWaitMachine, stored(value), answer)).toMatchObject({
        status: "done",
        value: "answered",
        output: { waitId: "w1", status: "answered", answer: "yes", by: "owner", principal: "person-anna" },
      });
    },
  );

  test("keeps the expiry it has", () => {
    // Its timer names the state: an event of no type of the machine's.
    const over: Parameters<typeof ownerWaitMachine.transition>[1] = JSON.parse(
      '{"type":"xstate.after.expiry.ownerWait.open.bounded"}',
    );
    expect(getNextSnapshot(ownerWaitMachine, stored("bounded"), over)).toMatchObject({
      status: "done",
      output: { status: "expired" },
    });
  });

  test("is withdrawn by its asker", () => {
    expect(getNextSnapshot(ownerWaitMachine, stored("unbounded"), { type: "cancel" })).toMatchObject({
      status: "done",
      output: { status: "cancelled" },
    });
  });
});

test("a conversation of version 2 takes the answer of a question that it asked then", () => {
  const call = { callId: "b", childId: "call-1-b", name: "ask_owner", kind: "ask", isOpen: true, digest: "d" } as const;
  const asking = {
    ...conversationMachine.resolveState({
      value: { turn: "asking" },
      context: { ...conversationOfVersion1, calls: [{ ...call, isWaitingForPerson: true }] },
    }),
    children: { "call-1-b": createEmptyActor() },
  };
  const output = { waitId: "w", status: "answered", answer: "yes", by: "owner" };
  const next = getNextSnapshot(conversationMachine, asking, { type: "xstate.done.actor.call-1-b", output });
  expect(next.value).toEqual({ turn: { working: "thinking" } });
});
